//! The steps of a network with gates (GRU).
//!
//! ```ir
//! %y = nn.gru_steps(%x, %r, %h)    f32[t, n, 1, 24], f32[1, 8, 24], f32[1, n, 8]  =>  (f32[t, 1, n, 8], f32[1, n, 8])
//! ```
//!
//! At each step, with the parts z, r, h of what is taken from the data, and those of the weight:
//!
//! ```text
//! z := f(z + state Rz)
//! r := f(r + state Rr)
//! h := g(h + (r * state) Rh)              or, with the reset behind the product,    g(h + r * (state Rh + bias))
//! state := (1 - z) h + z state
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::onnx::Model;
use super::programs::walk;
use super::sequence::{Sequences, numbers};

/// The states of a network with gates along sequences, and the last one
#[op(name = "nn.gru_steps", args = 3..=5)]
pub struct GruSteps {
    /// forward, reverse or bidirectional
    #[attr(default = "forward", one_of = ["forward", "reverse", "bidirectional"])]
    direction: String,
    /// the functions f, g of each direction; sigmoid, tanh where it is empty
    #[attr(default = "")]
    activations: String,
    /// how far from zero the argument of a gate may be
    clip: Option<f64>,
    /// whether the reset comes behind the product with the weight: an argument has what is added to that
    #[attr(default = false)]
    linear_before_reset: bool,
    /// whether the last argument has the lengths of the sequences
    #[attr(default = false)]
    lengths: bool,
}

impl GruSteps {
    fn sequences(&self) -> Sequences<'_> {
        Sequences {
            direction: &self.direction,
            activations: &self.activations,
            clip: self.clip,
            default: "sigmoid tanh",
            has_lengths: self.lengths,
            gates: 3,
            states: 1,
            more: if self.linear_before_reset { &[1] } else { &[] },
            is_packed: false,
        }
    }
}

impl Operator for GruSteps {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        self.sequences().infer(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let by = self.sequences();
        let functions = by.functions().map_err(OpError::Unsupported)?;
        let weight = numbers(cx.arg(1)?)?;
        let bias = match self.linear_before_reset {
            true => Some(numbers(cx.arg(3)?)?),
            false => None,
        };
        by.evaluate(cx, |way, x, states| {
            let [state] = states else { return };
            let hidden = state.len();
            let product = |row: &[f64], column: usize| -> f64 {
                let weight = |k: usize| weight[(way * hidden + k) * 3 * hidden + column];
                row.iter().enumerate().map(|(k, x)| x * weight(k)).sum()
            };
            let value = |function: usize, sum: f64| functions[way][function].value(by.clipped(sum));
            let gate = |part: usize| -> Vec<f64> {
                let column = |j: usize| part * hidden + j;
                let sum = |j: usize| x[column(j)] + product(state, column(j));
                (0..hidden).map(|j| value(0, sum(j))).collect()
            };
            let (update, reset) = (gate(0), gate(1));
            let kept: Vec<f64> =
                state.iter().zip(&reset).map(|(state, reset)| state * reset).collect();
            let next = (0..hidden).map(|j| {
                let column = 2 * hidden + j;
                let sum = match &bias {
                    Some(bias) => reset[j] * (product(state, column) + bias[way * hidden + j]),
                    None => product(&kept, column),
                };
                (1.0 - update[j]) * value(1, x[column] + sum) + update[j] * state[j]
            });
            *state = next.collect();
        })
    }
}

/// One sequence after the other.
#[rule(compute)]
fn program(op: &GruSteps, program: &mut Program) -> Result<()> {
    let program = &*program;
    walk(
        program,
        &op.sequences(),
        |way| Ok([way.rows("gates", 3), way.rows("kept", 1)]),
        |way, [gates, kept], step| {
            let [state] = &way.held[..] else { return program.seq(&[]) };
            let group = step.group;
            let taken = |sequence, at| way.taken(step, sequence, at);
            let gate = |sequence, part: i64, j| gates.at(&[sequence, way.part(part, j)]);
            let is_linear = op.linear_before_reset;
            let first = match is_linear {
                // The last part is the product with the weight alone, which the reset is put to afterwards.
                true => way.product(group, gates, state, [2, 1], |_, at| {
                    way.of(3, at - way.part(2, program.index(0)))
                }),
                false => program.seq(&[]),
            };
            let gated = way.product(group, gates, state, [0, 2], taken);
            let reset = way.each(group, |sequence, j| {
                let reset = way.gate(0, gate(sequence, 1, j));
                kept.set(
                    &[sequence, j],
                    match is_linear {
                        true => reset * gate(sequence, 2, j),
                        false => reset * state.at(&[sequence, j]),
                    },
                )
            });
            let second = match is_linear {
                true => way.each(group, |sequence, j| {
                    let at = way.part(2, j);
                    let sum = taken(sequence, at) + kept.at(&[sequence, j]);
                    gates.set(&[sequence, at], sum)
                }),
                false => way.product(group, gates, kept, [2, 1], taken),
            };
            let update = way.each(group, |sequence, j| {
                let (mut body, place) = (program.block(), [sequence, j]);
                let update = body.bind("update", way.gate(0, gate(sequence, 0, j)));
                let next = way.gate(1, gate(sequence, 2, j));
                let rest = program.literal(update.dtype(), 1.0) - update;
                body.push(state.set(&place, rest * next + update * state.at(&place)));
                body.finish()
            });
            program.seq(&[first, gated, reset, second, update])
        },
    )
}

/// `GRU`: what the steps take from the data is a product of its own.
#[rule(import.onnx, key = "GRU", since = 7)]
fn import(node: &mut Node<'_>) -> Outputs {
    let mut model = Model::of(node, 6, 3, 2)?;
    if node.flag("linear_before_reset", false)? {
        model.split_last_bias(node)?;
        model.set("linear_before_reset", true);
    }
    model.import(node, "nn.gru_steps", 1)
}
