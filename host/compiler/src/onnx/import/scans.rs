//! `Scan`: a loop over the rows of tensors. Rules take the row of a trip ([`loops`](super::loops)). The oldest one goes over what stands
//! in a batch besides, which is a loop around it.

use crate::ir::{Context, Dim};
use crate::onnx::proto::{AttributeValue, GraphProto, NodeProto};

use super::builder::{Body, Limit, Value};
use super::driver::Importer;
use super::error::Problem;
use super::loops::LoopBody;
use super::scope::Frame;

/// The rule that takes the row of a trip: of a tensor, the number of the trip, the axis, and whether the last one comes first.
pub(super) const ROW: &str = "tenon::Row";

/// The loop over what stands in a batch.
pub(super) struct Batch {
    /// How much that is.
    length: Dim,
    /// Its number, in the body.
    params: Vec<Value>,
}

/// The attributes of a node by name.
pub(super) struct Given<'m, 'g>(pub(super) &'g [(&'m str, &'m AttributeValue<'m>)]);

impl<'m> Given<'m, '_> {
    pub(super) fn get(&self, name: &str) -> Option<&'m AttributeValue<'m>> {
        self.0.iter().find(|(other, _)| *other == name).map(|&(_, value)| value)
    }

    /// A list of integers, one for each of `count`; zeros where it is not there.
    fn ints(&self, name: &str, count: usize) -> Result<Vec<i64>, String> {
        match self.get(name) {
            None => Ok(vec![0; count]),
            Some(AttributeValue::Ints(ints)) if ints.len() == count => Ok(ints.clone()),
            Some(_) => Err(format!("its attribute `{name}` is no list of {count} integers")),
        }
    }

    /// Axes, and the directions beside them.
    fn places(&self, kind: &str, count: usize) -> Result<Vec<(i64, bool)>, String> {
        let axes = self.ints(&format!("scan_{kind}_axes"), count)?;
        // The oldest one has directions of its inputs alone.
        let directions = match (kind, self.get("directions")) {
            ("input", Some(_)) => self.ints("directions", count)?,
            _ => self.ints(&format!("scan_{kind}_directions"), count)?,
        };
        Ok(axes.into_iter().zip(directions.into_iter().map(|direction| direction != 0)).collect())
    }
}

impl<'m> Importer<'m> {
    /// Begins the body of a `Scan`, with the rows that it reads; gives what its inputs stand for.
    pub(super) fn begin_scan(
        &mut self,
        frame: &Frame<'m>,
        (node, graph): (&'m NodeProto<'m>, &'m GraphProto<'m>),
        inputs: &[Option<Value>],
        given: &Given<'m, '_>,
    ) -> Result<(LoopBody<'m>, Vec<Value>), Problem> {
        let invalid = |reason: String| Err(Problem::Invalid(reason));
        let inputs: Option<Vec<Value>> = inputs.iter().copied().collect();
        let Some(inputs) = inputs else { return invalid("an input of it is left out".into()) };
        let scanned = match given.get("num_scan_inputs") {
            Some(&AttributeValue::Int(count)) => usize::try_from(count).ok(),
            _ => None,
        };
        let Some(scanned) = scanned.filter(|count| (1..=inputs.len()).contains(count)) else {
            return invalid("its attribute `num_scan_inputs` is missing or wrong".into());
        };
        let (carried, scanned) = inputs.split_at(inputs.len() - scanned);
        if graph.input.len() != inputs.len() || graph.output.len() < carried.len() {
            let (inputs, outputs) = (graph.input.len(), graph.output.len());
            return invalid(format!("its body has {inputs} inputs and {outputs} outputs"));
        }
        let rows = graph.output.len() - carried.len();
        let places = given.places("output", rows).map_err(Problem::Invalid)?;
        let axes = given.places("input", scanned.len()).map_err(Problem::Invalid)?;
        let mut axis_of = Vec::with_capacity(scanned.len());
        let mut extents = Vec::with_capacity(scanned.len());
        for (&x, &(axis, is_reversed)) in scanned.iter().zip(&axes) {
            let (axis, extent) = self.axis(x, axis)?;
            axis_of.push((x, axis, is_reversed));
            extents.push(extent);
        }
        let length = self.common(&extents)?;
        let go = self.boolean(true);
        let names = ["trip"].into_iter().chain(graph.input.iter().map(|input| input.name));
        let varied = self.varied(frame, node, carried);
        let (params, mut values) = self.begin_body(names, carried, (&varied, false))?;
        let row_names = graph.input[carried.len()..].iter().map(|input| input.name);
        for ((x, axis, is_reversed), name) in axis_of.into_iter().zip(row_names) {
            let [axis, is_reversed] =
                [axis, i64::from(is_reversed)].map(|number| self.known(number));
            let row = self.asked(ROW, &[x, params[0], axis, is_reversed])?;
            self.builder.define(row, name);
            values.push(row);
        }
        let (limit, carried) = (Limit::Dim(length), carried.to_vec());
        let (counts, says_again) = (false, false);
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
            appended: Vec::new(),
            kept: Vec::new(),
            sequences: Vec::new(),
            batch: None,
        };
        Ok((body, values))
    }

    /// What all of these extents are.
    fn common(&self, extents: &[Dim]) -> Result<Dim, Problem> {
        let Some((&first, others)) = extents.split_first() else {
            return Err(Problem::Invalid("it goes over nothing".into()));
        };
        let Some(&other) = others.iter().find(|&&other| other != first) else { return Ok(first) };
        let terms = self.cx.terms();
        let (a, b) = (terms.dim_text(first), terms.dim_text(other));
        Err(match terms.dim_value(self.cx.dim_sub(first, other)) {
            Some(_) => Problem::Invalid(format!("it goes over {a} rows and over {b}")),
            None => Problem::Unsupported(format!("rows of {a} and of {b}")),
        })
    }

    /// Begins the body of a `Scan` over what stands in a batch, within the body of a loop over that.
    pub(super) fn begin_batch(
        &mut self,
        frame: &Frame<'m>,
        (node, graph): (&'m NodeProto<'m>, &'m GraphProto<'m>),
        inputs: &[Option<Value>],
        given: &Given<'m, '_>,
    ) -> Result<(LoopBody<'m>, Vec<Value>), Problem> {
        if inputs.first().is_some_and(Option::is_some) {
            let reason = "how long each sequence of the batch is, as an input";
            return Err(Problem::Unsupported(reason.into()));
        }
        let all: Option<Vec<Value>> = inputs.iter().skip(1).copied().collect();
        let Some(all) = all else {
            return Err(Problem::Invalid("an input of it is left out".into()));
        };
        let extents = all.iter().map(|&x| self.axis(x, 0).map(|(_, extent)| extent));
        let extents = extents.collect::<Result<Vec<_>, _>>()?;
        let length = self.common(&extents)?;
        let (params, _) = self.begin_body(["batch"].into_iter(), &[], (&[], false))?;
        let begun = self
            .rows_of_batch(&all, params[0])
            .and_then(|rows| self.begin_scan(frame, (node, graph), &rows, given));
        match begun {
            Ok((body, values)) => {
                Ok((LoopBody { batch: Some(Batch { length, params }), ..body }, values))
            }
            Err(problem) => {
                self.builder.close_body(&[], true)?;
                Err(problem)
            }
        }
    }

    fn rows_of_batch(
        &mut self,
        all: &[Value],
        number: Value,
    ) -> Result<Vec<Option<Value>>, Problem> {
        let [axis, is_reversed] = [0, 0].map(|number| self.known(number));
        let rows = all.iter().map(|&x| self.asked(ROW, &[x, number, axis, is_reversed]).map(Some));
        rows.collect()
    }

    /// What the loop over a batch gives whose body gives `results`; `None` where something of these is missing.
    pub(super) fn repeat_batch(
        &mut self,
        batch: &Batch,
        results: Result<Option<Vec<Value>>, Problem>,
    ) -> Result<Option<Vec<Value>>, Problem> {
        let Ok(Some(results)) = results else {
            self.builder.close_body(&[], true)?;
            return results;
        };
        let go = self.boolean(true);
        let all: Vec<Value> = [go].into_iter().chain(results.iter().copied()).collect();
        let closed: Body = self.builder.close_body(&all, true)?;
        let cx = self.cx.clone();
        let mut types = Vec::with_capacity(results.len());
        for &result in &results {
            let ty = self.builder.ty(result);
            match cx.terms().tensor(ty) {
                Some((dtype, dims)) if !closed.finds_of(cx.terms(), ty) => {
                    let dims: Vec<Dim> = [batch.length].iter().chain(dims).copied().collect();
                    types.push(cx.tensor_type(dtype, &dims));
                }
                _ => {
                    let ty = cx.terms().type_text(ty);
                    return Err(Problem::Unsupported(format!("{ty} for each part of a batch")));
                }
            }
        }
        let limits = (Limit::Dim(batch.length), go);
        self.builder.repeat(&batch.params, &closed, limits, &[], &types).map(Some)
    }
}
