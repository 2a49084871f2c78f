//! Sequences that control flow makes longer.
//!
//! ```text
//! s = Loop(m, , e) {                          %s_body = fn (%i: i64[]) { … ret (true, %row) }
//!   (i, c, t): u = SequenceInsert(t, x)  =>   %s = loop(%s_body, m, true, ()) { out = (f32[m, 1, 4]) }
//! }                       gives (c, u)        and what `e` has in front of these rows
//! ```
//!
//! What a body only puts elements behind is not carried: the elements of a trip are a row of the loop, so they are written once. The
//! body then begins with an empty sequence, which nothing else reads. Every other sequence that is carried is a tensor with an
//! element in each row, whose number changes from trip to trip. Branches that give sequences of different lengths give such
//! tensors.

use std::collections::HashMap;

use crate::ir::{Bytes, Constant, Context, Dim, Symbol, TypeView};
use crate::onnx::proto::{AttributeValue, GraphProto, NodeProto, TypeProto};
use tenon_plugin_api::rule::import::Known;

use super::builder::Value;
use super::driver::Importer;
use super::error::Problem;
use super::kept::are_kept;
use super::loops::LoopBody;
use super::scope::{Frame, standard_domain};
use super::tensor::dtype_of_code;

/// The rule that makes a tensor of a sequence, an element in each row.
const ROWS_OF: &str = "tenon::SequenceRows";
/// The rule that makes a sequence of the rows of a tensor.
const OF_ROWS: &str = "tenon::SequenceOfRows";
/// The rule that puts what the trips of a loop have given behind a sequence.
const OF_TRIPS: &str = "tenon::SequenceOfTrips";

/// The rule that makes a tensor without rows: of an element's type and the dimensions of a row.
const NO_ROWS: &str = "tenon::SequenceNoRows";

/// What stands for a result of a choice that is a sequence of open length, among what is found.
pub(super) fn open_result(at: usize) -> String {
    format!("sequence {at}")
}

/// What a loop carries.
#[derive(Default)]
pub(super) struct Carried<'m> {
    /// The names that it has in the body.
    pub(super) names: Vec<&'m str>,
    pub(super) values: Vec<Value>,
    /// The sequences that the body only puts elements behind, which are not carried: where they stand in the model, and what they
    /// are before the first trip.
    pub(super) appended: Vec<(usize, Value)>,
    /// What no trip changes, which is not carried either: where it stands in the model, and what it is.
    pub(super) kept: Vec<(usize, Value)>,
    /// Which of `values` are other sequences.
    pub(super) sequences: Vec<usize>,
}

impl<'m> Importer<'m> {
    /// What a loop carries that carries `all` in the model.
    pub(super) fn carried(
        &mut self,
        graph: &'m GraphProto<'m>,
        all: Vec<Value>,
    ) -> Result<Carried<'m>, Problem> {
        let names = graph.input.iter().skip(2).map(|input| input.name);
        let outputs = graph.output.iter().skip(1).map(|output| output.name);
        let names: Vec<(&'m str, &'m str)> = names.zip(outputs).take(all.len()).collect();
        let are_appended = match all.iter().any(|&value| self.is_sequence(value)) {
            true => self.are_appended(graph, &names),
            false => vec![false; all.len()],
        };
        let are_kept = are_kept(graph, all.len());
        let mut carried = Carried::default();
        for (at, (value, (name, _))) in all.into_iter().zip(names).enumerate() {
            if are_kept[at] {
                carried.kept.push((at, value));
                continue;
            }
            if self.is_optional(value) {
                let reason = "an optional value, as one that it carries";
                return Err(Problem::Unsupported(reason.into()));
            }
            let value = match self.is_sequence(value) {
                true if are_appended[at] => {
                    carried.appended.push((at, value));
                    continue;
                }
                true => {
                    carried.sequences.push(carried.values.len());
                    match self.cx.terms().ty(self.builder.ty(value)) {
                        TypeView::Tuple(&[]) => self.no_rows(value, &graph.input[at + 2].ty)?,
                        _ => self.sequence_rows(value)?,
                    }
                }
                false => value,
            };
            carried.names.push(name);
            carried.values.push(value);
        }
        Ok(carried)
    }

    /// What stands for all that the model carries in a body in which `carried` stands for what the loop carries.
    pub(super) fn sequences_in_body(
        &mut self,
        mut carried: Vec<Value>,
        [appended, kept]: [&[(usize, Value)]; 2],
        sequences: &[usize],
    ) -> Result<Vec<Value>, Problem> {
        for &at in sequences {
            carried[at] = self.sequence_of(carried[at])?;
        }
        let mut beside = kept.to_vec();
        for &(at, _) in appended {
            beside.push((at, self.builder.tuple(&[])?));
        }
        put_in(&mut carried, beside);
        Ok(carried)
    }

    /// Makes tensors of what a body gives: of the sequences that the loop carries, and of what a trip puts behind others, which are
    /// rows.
    pub(super) fn unpack_sequences(
        &mut self,
        body: &LoopBody<'m>,
        results: &mut Vec<Value>,
    ) -> Result<(), Problem> {
        let mut rows = Vec::with_capacity(body.appended.len());
        let beside: HashMap<usize, bool> = [(&body.kept, false), (&body.appended, true)]
            .into_iter()
            .flat_map(|(all, is_row)| all.iter().map(move |&(at, _)| (at, is_row)))
            .collect();
        let mut carried = Vec::with_capacity(results.len());
        for (at, result) in results.drain(..).enumerate() {
            match beside.get(&at) {
                None => carried.push(result),
                Some(true) => rows.push(result),
                Some(false) => {}
            }
        }
        *results = carried;
        for &at in &body.sequences {
            results[at] = self.sequence_rows(results[at])?;
        }
        for row in rows {
            let row = self.sequence_rows(row)?;
            results.push(row);
        }
        Ok(())
    }

    /// Makes sequences of what a loop gives again.
    pub(super) fn pack_sequences(
        &mut self,
        body: &LoopBody<'m>,
        outputs: &mut Vec<Value>,
    ) -> Result<(), Problem> {
        if body.node.op_type == "SequenceMap" {
            for output in outputs.iter_mut() {
                *output = self.sequence_of(*output)?;
            }
        }
        let trips = outputs.split_off(outputs.len() - body.appended.len());
        for &at in &body.sequences {
            outputs[at] = self.sequence_of(outputs[at])?;
        }
        let mut beside = body.kept.clone();
        for (&(at, before), trips) in body.appended.iter().zip(trips) {
            beside.push((at, self.sequence_of_trips(before, trips)?));
        }
        put_in(outputs, beside);
        Ok(())
    }

    /// Whether a value is a sequence.
    pub(super) fn is_sequence(&self, value: Value) -> bool {
        !self.builder.is_missing(value)
            && matches!(self.cx.terms().ty(self.builder.ty(value)), TypeView::Tuple(_))
    }

    /// Whether a value is a sequence of open length, which rules have as a tuple of one tensor in a tuple.
    pub(super) fn is_open_sequence(&self, value: Value) -> bool {
        self.held(value) == Some(1)
    }

    /// Whether a value is one that a call says whether it is there: with the truth value in a tuple in a tuple.
    pub(super) fn is_optional(&self, value: Value) -> bool {
        self.held(value) == Some(2)
    }

    /// How many values stand in the tuple that is all that stands in a value.
    fn held(&self, value: Value) -> Option<usize> {
        let terms = self.cx.terms();
        let only = match terms.ty(self.builder.ty(value)) {
            TypeView::Tuple(&[only]) if !self.builder.is_missing(value) => only,
            _ => return None,
        };
        match terms.ty(only) {
            TypeView::Tuple(held) => Some(held.len()),
            _ => None,
        }
    }

    /// The elements of a sequence as the rows of a tensor.
    pub(super) fn sequence_rows(&mut self, sequence: Value) -> Result<Value, Problem> {
        self.asked(ROWS_OF, &[sequence])
    }

    /// The sequence of the rows of a tensor.
    pub(super) fn sequence_of(&mut self, rows: Value) -> Result<Value, Problem> {
        self.asked(OF_ROWS, &[rows])
    }

    /// A sequence with what the trips of a loop have put behind it.
    pub(super) fn sequence_of_trips(
        &mut self,
        before: Value,
        trips: Value,
    ) -> Result<Value, Problem> {
        self.asked(OF_TRIPS, &[before, trips])
    }

    /// Makes tensors of those results of a branch that are sequences of open length, and of those that are one in the other branch;
    /// says which that are.
    pub(super) fn open_results(
        &mut self,
        around: &Frame<'m>,
        node: &'m NodeProto<'m>,
        results: &mut [Value],
    ) -> Result<Vec<bool>, Problem> {
        let mut are_open = Vec::with_capacity(results.len());
        for (at, result) in results.iter_mut().enumerate() {
            let is_open = self.is_open_sequence(*result)
                || (self.is_sequence(*result) && self.finds(around, node, &open_result(at)));
            if is_open {
                *result = self.sequence_rows(*result)?;
            }
            are_open.push(is_open);
        }
        Ok(are_open)
    }

    /// Takes note of the results that are sequences of open length in one branch only; that is an error.
    pub(super) fn check_sequences(
        &self,
        around: &Frame<'m>,
        node: &'m NodeProto<'m>,
        [then, otherwise]: [&[bool]; 2],
    ) -> Result<(), Problem> {
        let mut differ = (0..then.len()).filter(|&at| then[at] != otherwise[at]).peekable();
        if differ.peek().is_none() {
            return Ok(());
        }
        differ.for_each(|at| self.want_shapes(around, node, &open_result(at)));
        Err(Problem::Unsupported("branches whose sequences have different lengths".into()))
    }

    /// Makes sequences of those results of a choice that are tensors in their place.
    pub(super) fn sequences_of(
        &mut self,
        mut results: Vec<Value>,
        are_open: &[bool],
    ) -> Result<Vec<Value>, Problem> {
        for (result, _) in results.iter_mut().zip(are_open).filter(|(_, is_open)| **is_open) {
            *result = self.sequence_of(*result)?;
        }
        Ok(results)
    }

    /// For each of the values that a body carries whether all that the body does with it is to put elements behind it, and to give
    /// the sequence that this makes. The names are those of the inputs, and of the outputs that belong to them.
    pub(super) fn are_appended(
        &self,
        graph: &'m GraphProto<'m>,
        names: &[(&'m str, &'m str)],
    ) -> Vec<bool> {
        let reads = self.reads(graph);
        let is_read_once = |name: &str| reads.get(name) == Some(&1);
        let (mut appends, mut loops) = (HashMap::new(), HashMap::new());
        let mut pending = vec![graph];
        while let Some(graph) = pending.pop() {
            for node in &graph.node {
                appends.extend(appended(node).filter(|(name, _)| is_read_once(name)));
                let Some(inner) = self.body_of(node) else { continue };
                let (from, to) = (inner.input.iter().skip(2), inner.output.iter().skip(1));
                let outside = node.input.iter().skip(2).zip(&node.output);
                for ((from, to), (&name, &next)) in from.zip(to).zip(outside) {
                    if is_read_once(name) && from.name != to.name {
                        loops.insert(name, (from.name, to.name, next));
                    }
                }
                pending.push(inner);
            }
        }
        let is_appended = |&(from, to): &(&'m str, &'m str)| {
            // What a loop inside does has to be done there: it ends in the output that belongs to the input.
            let (mut name, mut around) = (from, Vec::new());
            loop {
                name = match (appends.remove(name), around.last()) {
                    (Some(next), _) => next,
                    (None, Some(&(end, next))) if end == name && is_read_once(name) => {
                        around.pop();
                        next
                    }
                    _ => match loops.remove(name) {
                        Some((inside, end, next)) => {
                            around.push((end, next));
                            inside
                        }
                        None => break,
                    },
                };
            }
            // The output alone reads the last one.
            around.is_empty() && name != from && name == to && is_read_once(name)
        };
        names.iter().map(is_appended).collect()
    }

    /// The body of a node that is a loop.
    fn body_of(&self, node: &'m NodeProto<'m>) -> Option<&'m GraphProto<'m>> {
        if node.op_type != "Loop" || !standard_domain(node.domain).is_empty() {
            return None;
        }
        node.attribute.iter().find_map(|attribute| match &attribute.value {
            AttributeValue::Graph(graph) => self.graphs.get(graph),
            _ => None,
        })
    }

    /// A sequence that is empty before the first trip, as rows of the type that the body declares of it.
    fn no_rows(&mut self, sequence: Value, declared: &TypeProto<'m>) -> Result<Value, Problem> {
        let TypeProto::Sequence { elem_type, shape: Some(shape) } = declared else {
            return self.sequence_rows(sequence);
        };
        let dims: Option<Vec<Dim>> = shape.iter().map(|&dim| self.dims.of_output(dim)).collect();
        let (Ok(dtype), Some(dims)) = (dtype_of_code(*elem_type), dims) else {
            return self.sequence_rows(sequence);
        };
        let zero = Bytes::new(vec![0; (dtype.bits() as usize).div_ceil(8)]);
        let ty = self.cx.static_tensor_type(dtype, &[]);
        let zero = self.builder.constant(Constant { ty, name: Symbol(0), data: zero });
        let dims = self.builder.known(Known::vector(dims));
        self.asked(NO_ROWS, &[zero, dims])
    }

    /// How often a graph and those inside of its nodes read each name.
    fn reads(&self, graph: &'m GraphProto<'m>) -> HashMap<&'m str, usize> {
        let (mut pending, mut reads) = (vec![graph], HashMap::new());
        while let Some(graph) = pending.pop() {
            let of_nodes = graph.node.iter().flat_map(|node| node.input.iter().copied());
            for name in of_nodes.chain(graph.output.iter().map(|output| output.name)) {
                *reads.entry(name).or_insert(0) += 1;
            }
            let attributes = graph.node.iter().flat_map(|node| &node.attribute);
            pending.extend(attributes.filter_map(|attribute| match &attribute.value {
                AttributeValue::Graph(graph) => self.graphs.get(graph),
                _ => None,
            }));
        }
        reads
    }
}

/// Puts values at their places among others.
fn put_in(values: &mut Vec<Value>, mut beside: Vec<(usize, Value)>) {
    beside.sort_by_key(|&(at, _)| at);
    let mut others = std::mem::take(values).into_iter();
    for (at, value) in beside {
        let before = at - values.len();
        values.extend(others.by_ref().take(before));
        values.push(value);
    }
    values.extend(others);
}

/// The sequence that a node puts an element behind, and what it gives.
fn appended<'m>(node: &NodeProto<'m>) -> Option<(&'m str, &'m str)> {
    let is_insert = node.op_type == "SequenceInsert" && standard_domain(node.domain).is_empty();
    match (&node.input[..], &node.output[..]) {
        (&[sequence, _] | &[sequence, _, ""], &[next]) if is_insert => Some((sequence, next)),
        _ => None,
    }
}
