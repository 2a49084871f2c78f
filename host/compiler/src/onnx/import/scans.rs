//! `Scan`: a loop over the rows of tensors. Rules take the row of a trip ([`loops`](super::loops)).

use crate::ir::{Context, Dim};
use crate::onnx::proto::{AttributeValue, GraphProto, NodeProto};

use super::builder::{Limit, Value};
use super::driver::Importer;
use super::error::Problem;
use super::loops::LoopBody;
use super::scope::Frame;

/// The rule that takes the row of a trip: of a tensor, the number of the trip, the axis, and whether the last one comes first.
pub(super) const ROW: &str = "tenon::Row";

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
        let directions = self.ints(&format!("scan_{kind}_directions"), count)?;
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
        let mut length: Option<Dim> = None;
        let mut axis_of = Vec::with_capacity(scanned.len());
        for (&x, &(axis, is_reversed)) in scanned.iter().zip(&axes) {
            let (axis, extent) = self.axis(x, axis)?;
            match length.replace(extent) {
                Some(other) if other != extent => {
                    let terms = self.cx.terms();
                    let (a, b) = (terms.dim_text(other), terms.dim_text(extent));
                    return match terms.dim_value(self.cx.dim_sub(other, extent)) {
                        Some(_) => invalid(format!("it goes over {a} rows and over {b}")),
                        None => Err(Problem::Unsupported(format!("rows of {a} and of {b}"))),
                    };
                }
                _ => axis_of.push((x, axis, is_reversed)),
            }
        }
        let Some(length) = length else { return invalid("it goes over nothing".into()) };
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
            sequences: Vec::new(),
        };
        Ok((body, values))
    }
}
