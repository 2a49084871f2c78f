//! Loops over a graph that stands in a node.
//!
//! ```text
//! (z, all) = Loop(m, c, x)              %z_body = fn (%i: i64[], %v: f32[4]) {
//!   body: (i, d, v) gives                 %w = acme.ramp(%v)
//!     (d, Relu(v), v)             =>      ret (const(bool[], true), %w, %v)
//!                                       }
//!                                       %l = loop(%z_body, dim(m), %c, (%x)) { out = (f32[4], f32[m, 4]) }
//! ```
//!
//! The sweep goes through a body as through a branch. What a body carries has one type for all trips. Rows of all trips need
//! a number of trips that follows from shapes. `Scan` is a loop over the rows of tensors; rules take a row, and bring the
//! rows of a result to the axis where they belong.

use std::mem::take;

use crate::ir::{Bytes, Constant, Context, DType, Dim, Symbol, Type};
use crate::onnx::proto::{AttributeValue, Dimension, GraphProto, NodeProto, TypeProto};
use tenon_plugin_api::rule::import::Known;

use super::GraphProblem;
use super::builder::{Body, Limit, Value};
use super::control::Control;
use super::driver::Importer;
use super::error::{Problem, Stop};
use super::problems::describe;
use super::scans::{Batch, Given};
use super::scope::{Frame, Role, Values};
use super::sequences::Carried;

/// The rule that brings rows to their axis: of a tensor of rows, the axis, and whether the last one comes first.
const ROWS: &str = "tenon::Rows";
/// The rule that gives the number behind one.
const NEXT: &str = "tenon::Next";
/// What stands for the number of rows among what is found.
const ROWS_FOUND: &str = "rows";

/// What stands for an axis of something that is carried among what is found.
fn carried_axis(at: usize, axis: usize) -> String {
    format!("carried {at} {axis}")
}

/// A loop whose body is in work.
pub(super) struct LoopBody<'m> {
    pub(super) node: &'m NodeProto<'m>,
    pub(super) graph: &'m GraphProto<'m>,
    pub(super) limit: Limit,
    /// Whether there is a first trip.
    pub(super) go: Value,
    /// What is carried, before the first trip.
    pub(super) carried: Vec<Value>,
    /// The number of the trip, and what is carried, in the body.
    pub(super) params: Vec<Value>,
    /// What of it changes its shape, by its place, with the axes along which it does. Their extents are carried behind the others.
    pub(super) varied: Vec<(usize, Vec<bool>)>,
    /// Whether the number of trips is found, for rows; it is carried last.
    pub(super) counts: bool,
    /// Whether the first result of the body says if there is another trip.
    pub(super) says_again: bool,
    /// For each row that it gives, the axis of the rows in the result, and whether the last one comes first.
    pub(super) places: Vec<(i64, bool)>,
    /// The sequences that it only puts elements behind: their places among what the model carries, and what they are before.
    pub(super) appended: Vec<(usize, Value)>,
    /// What no trip changes: its place among what the model carries, and what it is.
    pub(super) kept: Vec<(usize, Value)>,
    /// The sequences of open length that it carries, by their places among `carried`.
    pub(super) sequences: Vec<usize>,
    /// The loop around it over what stands in a batch.
    pub(super) batch: Option<Batch>,
}

impl<'m> Importer<'m> {
    /// Enters the body of a loop.
    pub(super) fn enter_loop(
        &mut self,
        frame: &mut Frame<'m>,
        node: &'m NodeProto<'m>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<Control<'m>, Stop> {
        let version = frame.version("");
        let wrong = |reason: String| GraphProblem::Node { node: describe(node, version), reason };
        let graph = match Given(given).get("body") {
            Some(AttributeValue::Graph(graph)) => self.graphs.get(graph),
            _ => None,
        };
        let graph = graph.ok_or_else(|| wrong("its attribute `body` is missing".into()))?;
        if inputs.iter().flatten().any(|&input| self.builder.is_missing(input)) {
            inputs.iter().flatten().for_each(|&input| self.report_absent(input));
            self.survey_graphs(frame.operator_sets, given)?;
            self.leave_out(node, frame)?;
            return Ok(Control::Left);
        }
        let name = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        self.builder.begin_node(name, frame.source_of(&self.cx, node));
        let begun = match node.op_type {
            "SequenceMap" => self.begin_map((node, graph), inputs),
            "Scan" if frame.version("").unwrap_or(0) < 9 => {
                self.begin_batch(frame, (node, graph), inputs, &Given(given))
            }
            "Scan" => self.begin_scan(frame, (node, graph), inputs, &Given(given)),
            _ => self.begin_loop(frame, node, graph, inputs),
        };
        let (body, values) = match begun {
            Ok(begun) => begun,
            Err(problem) => {
                self.no_control::<()>(frame, node, problem)?;
                self.survey_graphs(frame.operator_sets, given)?;
                self.leave_out(node, frame)?;
                return Ok(Control::Left);
            }
        };
        let mut names = take(&mut frame.values);
        names.open();
        for (input, value) in graph.input.iter().zip(values) {
            names.define_inner(input.name, value)?;
        }
        self.weights(graph, &mut names)?;
        Ok(Control::Entered(Box::new(Frame {
            nodes: &graph.node,
            next: 0,
            values: names,
            attributes: frame.attributes.clone(),
            operator_sets: frame.operator_sets,
            base: frame.base.clone(),
            path: frame.path_to(node),
            role: Role::Body(Box::new(body)),
        })))
    }

    /// Begins the body of a `Loop`; gives what its inputs stand for.
    fn begin_loop(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        graph: &'m GraphProto<'m>,
        inputs: &[Option<Value>],
    ) -> Result<(LoopBody<'m>, Vec<Value>), Problem> {
        let invalid = |reason: String| Err(Problem::Invalid(reason));
        let input = |at: usize| inputs.get(at).copied().flatten();
        let carried: Option<Vec<Value>> = inputs.iter().skip(2).copied().collect();
        let Some(carried) = carried else {
            return invalid("a value that it carries is left out".into());
        };
        if graph.input.len() != carried.len() + 2 {
            let (found, expected) = (graph.input.len(), carried.len() + 2);
            return invalid(format!("its body has {found} inputs, and {expected} are expected"));
        }
        let Some(rows) = graph.output.len().checked_sub(carried.len() + 1) else {
            let (found, least) = (graph.output.len(), carried.len() + 1);
            return invalid(format!("its body has {found} outputs, and {least} are expected"));
        };
        let limit = match input(0) {
            None => Limit::Value(self.number(i64::MAX)),
            Some(limit) => self.limit(limit)?,
        };
        let go = match input(1) {
            None => self.boolean(true),
            Some(go) => self.scalar(go, DType::BOOL)?,
        };
        let counts = self.finds(frame, node, ROWS_FOUND);
        let Carried { names, values: carried, appended, kept, sequences } =
            self.carried(graph, carried)?;
        let varied = self.varied(frame, node, &carried);
        let names = [graph.input[0].name].into_iter().chain(names);
        let (params, inner) = self.begin_body(names, &carried, (&varied, counts))?;
        let inner = self.sequences_in_body(inner, [&appended, &kept], &sequences)?;
        // A body runs while the condition is true.
        let mut values = vec![params[0], self.boolean(true)];
        values.extend(inner);
        let (places, says_again) = (vec![(0, false); rows + appended.len()], true);
        let body = LoopBody {
            node,
            graph,
            limit,
            go,
            carried,
            params,
            varied,
            counts,
            says_again,
            places,
            appended,
            kept,
            sequences,
            batch: None,
        };
        Ok((body, values))
    }

    /// What of a loop changes its shape from trip to trip, as far as that is known by now.
    pub(super) fn varied(
        &self,
        frame: &Frame<'m>,
        node: &NodeProto<'m>,
        carried: &[Value],
    ) -> Vec<(usize, Vec<bool>)> {
        let terms = self.cx.terms();
        let of = |(at, &value): (usize, &Value)| {
            let (_, dims) = terms.tensor(self.builder.ty(value))?;
            let is_open = |axis| self.finds(frame, node, &carried_axis(at, axis));
            let is_open: Vec<bool> = (0..dims.len()).map(is_open).collect();
            is_open.contains(&true).then_some((at, is_open))
        };
        carried.iter().enumerate().filter_map(of).collect()
    }

    /// Opens a body with the number of the trip and what is carried, of these names. Gives the parameters, and what stands for what
    /// is carried.
    pub(super) fn begin_body(
        &mut self,
        names: impl Iterator<Item = &'m str>,
        carried: &[Value],
        (varied, counts): (&[(usize, Vec<bool>)], bool),
    ) -> Result<(Vec<Value>, Vec<Value>), Problem> {
        let mut types = vec![self.cx.static_tensor_type(DType::I64, &[])];
        for (at, &value) in carried.iter().enumerate() {
            let mut ty = self.builder.ty(value);
            if self.cx.terms().tensor(ty).is_none() {
                let ty = self.cx.terms().type_text(ty);
                return Err(Problem::Unsupported(format!("{ty} as a value that it carries")));
            }
            if varied.iter().any(|(it, _)| *it == at) {
                ty = self.builder.unsized_type(ty);
            }
            types.push(ty);
        }
        self.builder.open_body();
        let mut params: Vec<Value> =
            names.zip(types).map(|(name, ty)| self.builder.body_param(name, ty)).collect();
        let mut inner = params[1..].to_vec();
        for (at, is_open) in varied {
            let cx = self.cx.clone();
            let rank = is_open.len() as i64;
            let extents = cx.static_tensor_type(DType::I64, &[rank]);
            let extents = self.builder.body_param("extents", extents);
            params.push(extents);
            let dims = cx.terms().tensor(self.builder.ty(carried[*at])).map_or(&[][..], |it| it.1);
            inner[*at] = self.with_found_extents(inner[*at], extents, dims, is_open)?;
            // It is there for all of the body, whoever reads it first.
            self.builder.define(inner[*at], "carried");
        }
        if counts {
            let number = self.cx.static_tensor_type(DType::I64, &[]);
            params.push(self.builder.body_param("trips", number));
        }
        Ok((params, inner))
    }

    /// Ends the body of a loop.
    pub(super) fn leave_loop(
        &mut self,
        body: LoopBody<'m>,
        mut values: Values<'m>,
        around: &mut Frame<'m>,
    ) -> Result<(), Stop> {
        let results = self.results(body.graph, &values)?;
        values.close();
        around.values = values;
        let name = body.node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        self.builder.begin_node(name, around.source_of(&self.cx, body.node));
        let is_whole = !results.iter().any(|&result| self.builder.is_missing(result));
        let outputs = match is_whole {
            true => self.repeat(around, &body, results).map(Some),
            false => self.builder.close_body(&[], true).map(|_| None),
        };
        let outputs = match &body.batch {
            Some(batch) => self.repeat_batch(batch, outputs),
            None => outputs,
        };
        let outputs = outputs.or_else(|problem| self.no_control(around, body.node, problem))?;
        match outputs {
            Some(outputs) => self.define_all(body.node, &outputs, around),
            None => self.leave_out(body.node, around),
        }
    }

    /// What a loop gives whose body gives `results`.
    fn repeat(
        &mut self,
        frame: &Frame<'m>,
        body: &LoopBody<'m>,
        mut results: Vec<Value>,
    ) -> Result<Vec<Value>, Problem> {
        let again = match body.says_again {
            true => self.scalar(results.remove(0), DType::BOOL),
            false => Ok(self.boolean(true)),
        };
        // The body is closed whatever is wrong.
        let is_endless = again.as_ref().is_ok_and(|&again| self.is_true(again));
        let unpacked = self.unpack_sequences(body, &mut results);
        let declared = self.rows_as_declared(body, &mut results);
        // Behind what the model carries stand extents and the number of trips.
        let (mut initial, own_rows) = (body.carried.clone(), results.split_off(body.carried.len()));
        let of_model: Vec<Value> = results.iter().chain(&own_rows).copied().collect();
        for (at, _) in &body.varied {
            let extents = [results[*at], initial[*at]].map(|value| self.extents_of(value));
            results.push(extents[0]);
            initial.push(extents[1]);
        }
        let mut counted = Ok(());
        if body.counts {
            match self.asked(NEXT, &[body.params[0]]) {
                Ok(next) => results.push(next),
                Err(problem) => counted = Err(problem),
            }
            initial.push(self.number(0));
        }
        let all = again.iter().copied().chain(results.iter().copied()).chain(own_rows);
        let all: Vec<Value> = all.collect();
        let mut closed: Body = self.builder.close_body(&all, true)?;
        again?;
        unpacked?;
        declared?;
        counted?;
        let rows = &of_model[body.carried.len()..];
        for (at, &row) in rows.iter().enumerate() {
            let ty = self.builder.ty(row);
            if closed.finds_of(self.cx.terms(), ty) {
                let ty = self.cx.terms().type_text(ty);
                let what = match at + body.appended.len() < rows.len() {
                    true => format!("rows of type {ty}"),
                    false => {
                        format!("a sequence to which a trip adds {ty}, a row for each element")
                    }
                };
                return Err(Problem::Unsupported(format!("{what}, whose shape each trip finds")));
            }
        }
        let makes_all = is_endless && self.is_true(body.go);
        let mut types = self.out_types(frame, body, &of_model, makes_all)?;
        let extra = initial.len() - body.carried.len();
        let rows_from = body.carried.len();
        types.splice(
            rows_from..rows_from,
            initial[rows_from..].iter().map(|&value| self.builder.ty(value)),
        );
        for (at, _) in &body.varied {
            closed.types[at + 1] = types[*at];
        }
        let limits = (body.limit, body.go);
        let mut outputs = self.builder.repeat(&body.params, &closed, limits, &initial, &types)?;
        let mut rows = outputs.split_off(rows_from + extra);
        let mut extras = outputs.split_off(rows_from).into_iter();
        for ((at, is_open), extents) in body.varied.iter().zip(&mut extras) {
            let cx = self.cx.clone();
            let dims =
                cx.terms().tensor(self.builder.ty(body.carried[*at])).map_or(&[][..], |it| it.1);
            outputs[*at] = self.with_found_extents(outputs[*at], extents, dims, is_open)?;
        }
        if let Some(count) = extras.next() {
            rows = self.found_rows(rows, count, &of_model[rows_from..])?;
        }
        for (rows, &(axis, is_reversed)) in rows.into_iter().zip(&body.places) {
            outputs.push(match (axis, is_reversed) {
                (0, false) => rows,
                _ => {
                    let (axis, _) = self.axis(rows, axis)?;
                    let [axis, is_reversed] =
                        [axis, i64::from(is_reversed)].map(|number| self.known(number));
                    self.asked(ROWS, &[rows, axis, is_reversed])?
                }
            });
        }
        self.pack_sequences(body, &mut outputs)?;
        if outputs.len() < body.node.output.len() {
            let (made, wanted) = (outputs.len(), body.node.output.len());
            return Err(Problem::Invalid(format!("its body makes {made} of {wanted} outputs")));
        }
        Ok(outputs)
    }

    /// Gives rows whose shapes a trip finds the extents that the body declares: a trip that finds others is refused.
    fn rows_as_declared(
        &mut self,
        body: &LoopBody<'m>,
        results: &mut [Value],
    ) -> Result<(), Problem> {
        let graph = body.graph;
        let count = body.carried.len() + body.appended.len() + body.kept.len();
        let first = count + usize::from(body.says_again);
        let declared = graph.output.iter().skip(first);
        for (row, output) in results.iter_mut().skip(body.carried.len()).zip(declared) {
            let cx = self.cx.clone();
            let terms = cx.terms();
            let (TypeProto::Tensor { shape: Some(shape), .. }, Some((_, dims))) =
                (&output.ty, terms.tensor(self.builder.ty(*row)))
            else {
                continue;
            };
            let told = dims.iter().zip(shape).map(|(&dim, told)| match *told {
                Dimension::Value(value) if self.builder.is_found_here(dim) => cx.dim(value),
                _ => dim,
            });
            let told: Vec<Dim> = told.collect();
            if told != dims && shape.len() == dims.len() {
                let told = self.builder.known(Known::vector(told));
                *row = self.asked(super::shapes::SHAPED, &[*row, told])?;
            }
        }
        Ok(())
    }

    /// Rows of which it is found how many there are.
    fn found_rows(
        &mut self,
        rows: Vec<Value>,
        count: Value,
        each: &[Value],
    ) -> Result<Vec<Value>, Problem> {
        let found = self.asked(super::sizes::FOUND, &[count])?;
        let count = self.builder.elements(found).and_then(|found| found.elements.first().copied());
        let Some(count) = count else {
            return Err(Problem::Rule("the number of trips is not found".into()));
        };
        let mut all = Vec::with_capacity(rows.len());
        for (rows, &row) in rows.into_iter().zip(each) {
            let cx = self.cx.clone();
            let of_row = cx.terms().tensor(self.builder.ty(row)).map_or(&[][..], |it| it.1);
            let dims = [count].into_iter().chain(of_row.iter().copied()).collect();
            let dims = self.builder.known(Known::vector(dims));
            all.push(self.asked(super::shapes::SHAPED, &[rows, dims])?);
        }
        Ok(all)
    }

    /// The types of what a loop gives: what is carried, and the rows.
    fn out_types(
        &self,
        frame: &Frame<'m>,
        body: &LoopBody<'m>,
        results: &[Value],
        makes_all_trips: bool,
    ) -> Result<Vec<Type>, Problem> {
        let terms = self.cx.terms();
        let mut types = Vec::with_capacity(results.len());
        for (at, &result) in results.iter().enumerate() {
            let ty = self.builder.ty(result);
            let Some(&first) = body.carried.get(at) else {
                let Some((dtype, dims)) = terms.tensor(ty) else {
                    let ty = terms.type_text(ty);
                    return Err(Problem::Unsupported(format!("rows of type {ty}")));
                };
                if body.counts {
                    types.push(self.builder.unsized_type(ty));
                    continue;
                }
                let (Limit::Dim(trips), true) = (body.limit, makes_all_trips) else {
                    self.want_shapes(frame, body.node, ROWS_FOUND);
                    let text =
                        "a row for each trip, where shapes do not say how many trips there are";
                    return Err(Problem::NotConstant { input: Some(0), text: text.into() });
                };
                let dims: Vec<Dim> = [trips].into_iter().chain(dims.iter().copied()).collect();
                types.push(self.cx.tensor_type(dtype, &dims));
                continue;
            };
            let before = self.builder.ty(first);
            let varied = body.varied.iter().find(|(it, _)| *it == at);
            let is_open = varied.map_or(&[][..], |(_, is_open)| is_open);
            if self.wants_axes(frame, body.node, at, ([before, ty], is_open)) {
                types.push(self.builder.unsized_type(ty));
                continue;
            }
            if before != ty {
                let (before, after) = (terms.type_text(before), terms.type_text(ty));
                return Err(Problem::Unsupported(format!(
                    "a value that it carries and that changes from {before} to {after}"
                )));
            }
            types.push(ty);
        }
        Ok(types)
    }

    /// Whether something that is carried changes its shape along axes whose extents are found; takes note of those that should be.
    fn wants_axes(
        &self,
        frame: &Frame<'m>,
        node: &NodeProto<'m>,
        at: usize,
        ([before, after], is_open): ([Type; 2], &[bool]),
    ) -> bool {
        let terms = self.cx.terms();
        let (Some((x, before)), Some((y, after))) = (terms.tensor(before), terms.tensor(after))
        else {
            return false;
        };
        if x != y || before.len() != after.len() {
            return false;
        }
        let differs = (0..before.len()).filter(|&axis| before[axis] != after[axis]);
        let unknown = differs.filter(|&axis| !is_open.get(axis).copied().unwrap_or(false));
        let unknown: Vec<usize> = unknown.collect();
        unknown.iter().for_each(|&axis| self.want_shapes(frame, node, &carried_axis(at, axis)));
        unknown.is_empty() && !is_open.is_empty()
    }

    /// How many trips a value allows.
    fn limit(&mut self, value: Value) -> Result<Limit, Problem> {
        let value = self.scalar(value, DType::I64)?;
        let known = self.builder.elements(value);
        match known.as_ref().map(|known| &known.elements[..]) {
            Some(&[dim]) => Ok(Limit::Dim(self.cx.dim_max(dim, self.cx.dim(0)))),
            _ => Ok(Limit::Value(value)),
        }
    }

    /// An axis of a tensor counted from the front, and its extent.
    pub(super) fn axis(&self, x: Value, axis: i64) -> Result<(i64, Dim), Problem> {
        let terms = self.cx.terms();
        let ty = self.builder.ty(x);
        let Some((_, dims)) = terms.tensor(ty) else {
            return Err(Problem::Unsupported(format!("rows of {}", terms.type_text(ty))));
        };
        let rank = dims.len() as i64;
        let place = if axis < 0 { axis + rank } else { axis };
        match usize::try_from(place).ok().and_then(|place| dims.get(place)) {
            Some(&extent) => Ok((place, extent)),
            None => Err(Problem::Invalid(format!("axis {axis} of {}", terms.type_text(ty)))),
        }
    }

    fn is_true(&self, value: Value) -> bool {
        let constant = self.builder.as_constant(value);
        constant.is_some_and(|constant| constant.data.first().is_some_and(|&byte| byte != 0))
    }

    pub(super) fn boolean(&mut self, value: bool) -> Value {
        let ty = self.cx.static_tensor_type(DType::BOOL, &[]);
        let data = Bytes::new(vec![u8::from(value)]);
        self.builder.constant(Constant { ty, name: Symbol(0), data })
    }

    fn number(&mut self, value: i64) -> Value {
        let ty = self.cx.static_tensor_type(DType::I64, &[]);
        let data = Bytes::new(value.to_le_bytes().to_vec());
        self.builder.constant(Constant { ty, name: Symbol(0), data })
    }

    pub(super) fn known(&mut self, number: i64) -> Value {
        let number = self.cx.dim(number);
        self.builder.known(Known::vector(vec![number]))
    }

    /// Defines the outputs of a node that cannot be made.
    pub(super) fn leave_out(
        &mut self,
        node: &'m NodeProto<'m>,
        frame: &mut Frame<'m>,
    ) -> Result<(), Stop> {
        let missing: Vec<Value> = node.output.iter().map(|_| self.builder.missing()).collect();
        self.define_all(node, &missing, frame)
    }
}
