//! The steps of a network without gates.
//!
//! ```ir
//! %y = nn.rnn_steps(%x, %r, %h)    f32[t, n, 1, 8], f32[1, 8, 8], f32[1, n, 8]  =>  (f32[t, 1, n, 8], f32[1, n, 8])
//! ```
//!
//! ```text
//! state := f(x + state R)
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::onnx::Model;
use super::programs::walk;
use super::sequence::{Sequences, numbers};

/// The states of a recurrent network along sequences, and the last one
#[op(name = "nn.rnn_steps", args = 3..=4)]
pub struct RnnSteps {
    /// forward, reverse or bidirectional
    #[attr(default = "forward", one_of = ["forward", "reverse", "bidirectional"])]
    direction: String,
    /// the function f of each direction; tanh where it is empty
    #[attr(default = "")]
    activations: String,
    /// how far from zero the argument of a gate may be
    clip: Option<f64>,
    /// whether the last argument has the lengths of the sequences
    #[attr(default = false)]
    lengths: bool,
}

impl RnnSteps {
    fn sequences(&self) -> Sequences<'_> {
        Sequences {
            direction: &self.direction,
            activations: &self.activations,
            clip: self.clip,
            default: "tanh",
            has_lengths: self.lengths,
            gates: 1,
            states: 1,
            more: &[],
            is_packed: false,
        }
    }
}

impl Operator for RnnSteps {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        self.sequences().infer(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let by = self.sequences();
        let functions = by.functions().map_err(OpError::Unsupported)?;
        let weight = numbers(cx.arg(1)?)?;
        by.evaluate(cx, |way, x, states| {
            let [state] = states else { return };
            let hidden = state.len();
            let next = (0..hidden).map(|j| {
                let weight = |k: usize| weight[(way * hidden + k) * hidden + j];
                let sum: f64 = state.iter().enumerate().map(|(k, state)| state * weight(k)).sum();
                functions[way][0].value(by.clipped(x[j] + sum))
            });
            *state = next.collect();
        })
    }
}

/// One sequence after the other.
#[rule(compute)]
fn program(op: &RnnSteps, program: &mut Program) -> Result<()> {
    let program = &*program;
    walk(
        program,
        &op.sequences(),
        |way| Ok(way.rows("sums", 1)),
        |way, sums, step| {
            let [state] = &way.held[..] else { return program.seq(&[]) };
            let taken = |sequence, at| way.taken(step, sequence, at);
            let products = way.product(step.group, sums, state, [0, 1], taken);
            let update = way.each(step.group, |sequence, j| {
                let place = [sequence, j];
                state.set(&place, way.gate(0, sums.at(&place)))
            });
            program.seq(&[products, update])
        },
    )
}

/// `RNN`: what the steps take from the data is a product of its own.
#[rule(import.onnx, key = "RNN", since = 7)]
fn import(node: &mut Node<'_>) -> Outputs {
    let model = Model::of(node, 6, 1, 1)?;
    model.import(node, "nn.rnn_steps", 1)
}
