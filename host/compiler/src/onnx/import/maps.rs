//! `SequenceMap`: a loop over the elements of sequences, which are rows ([`sequences`](super::sequences)); what it gives for each of
//! them are the elements of sequences again.

use crate::ir::{Context, DType, Dim};
use crate::onnx::proto::{GraphProto, NodeProto};
use tenon_plugin_api::rule::import::Known;

use super::builder::{Limit, Value};
use super::cases::AT_LEAST;
use super::driver::Importer;
use super::error::Problem;
use super::loops::LoopBody;
use super::scans::ROW;

impl<'m> Importer<'m> {
    /// Begins the body of a `SequenceMap`; gives what its inputs stand for: elements of sequences, and what is given as a tensor.
    pub(super) fn begin_map(
        &mut self,
        (node, graph): (&'m NodeProto<'m>, &'m GraphProto<'m>),
        inputs: &[Option<Value>],
    ) -> Result<(LoopBody<'m>, Vec<Value>), Problem> {
        let invalid = |reason: &str| Err(Problem::Invalid(reason.into()));
        let inputs: Option<Vec<Value>> = inputs.iter().copied().collect();
        let Some(inputs) = inputs else { return invalid("an input of it is left out") };
        if graph.input.len() != inputs.len() {
            return invalid("its body has another number of inputs");
        }
        let mut given: Vec<(Value, bool)> = Vec::with_capacity(inputs.len());
        let mut lengths: Vec<Dim> = Vec::new();
        for input in inputs {
            let is_sequence = self.is_sequence(input);
            let value = if is_sequence { self.sequence_rows(input)? } else { input };
            if is_sequence {
                lengths.push(self.axis(value, 0)?.1);
            }
            given.push((value, is_sequence));
        }
        let Some(&length) = lengths.first() else { return invalid("its input 1 is no sequence") };
        for &other in &lengths[1..] {
            self.expect_equal(length, other)?;
        }
        let (params, _) = self.begin_body(["trip"].into_iter(), &[], (&[], false))?;
        let mut values = Vec::with_capacity(given.len());
        for ((value, is_sequence), input) in given.into_iter().zip(&graph.input) {
            values.push(match is_sequence {
                true => {
                    let [axis, is_reversed] = [0, 0].map(|number| self.known(number));
                    let row = self.asked(ROW, &[value, params[0], axis, is_reversed])?;
                    self.builder.define(row, input.name);
                    row
                }
                false => value,
            });
        }
        let body = LoopBody {
            node,
            graph,
            limit: Limit::Dim(length),
            go: self.boolean(true),
            carried: Vec::new(),
            params,
            varied: Vec::new(),
            counts: false,
            says_again: false,
            places: vec![(0, false); graph.output.len()],
            appended: Vec::new(),
            kept: Vec::new(),
            sequences: Vec::new(),
            batch: None,
        };
        Ok((body, values))
    }

    /// Ends a call in which two extents differ.
    fn expect_equal(&mut self, a: Dim, b: Dim) -> Result<(), Problem> {
        if a == b {
            return Ok(());
        }
        if self.cx.terms().dim_value(self.cx.dim_sub(a, b)).is_some() {
            return Err(Problem::Invalid("its sequences have different lengths".into()));
        }
        let [a, b] = [a, b].map(|dim| self.builder.known(Known::scalar(DType::I64, dim)));
        for order in [[a, b], [b, a]] {
            let holds = self.asked(AT_LEAST, &order)?;
            self.builder.expect(holds)?;
        }
        Ok(())
    }
}
