//! The steps of a network with a long memory (LSTM).
//!
//! ```ir
//! %y = nn.lstm_steps(%x, %r, %h, %c)    f32[t, n, 1, 32], f32[1, 8, 32], f32[1, n, 8], f32[1, n, 8]  =>  (f32[t, 1, n, 8], f32[1, n, 8], f32[1, n, 8])
//! ```
//!
//! At each step, with the parts i, o, f, c of what is taken from the data and the state:
//!
//! ```text
//! memory := f(f) memory + f(i) g(c)
//! state  := f(o) h(memory)
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Buffer, Scalar, Stmt};
use tenon_plugin_api::rule::prelude::*;

use super::onnx::Model;
use super::programs::{Way, walk};
use super::sequence::{Sequences, numbers};

/// The states of a long short-term memory along sequences, and the last ones
#[op(name = "nn.lstm_steps", args = 4..=6)]
pub struct LstmSteps {
    /// forward, reverse or bidirectional
    #[attr(default = "forward", one_of = ["forward", "reverse", "bidirectional"])]
    direction: String,
    /// the functions f, g, h of each direction, such as `sigmoid tanh scaled_tanh(1.7,0.6)`; sigmoid, tanh, tanh where it is empty
    #[attr(default = "")]
    activations: String,
    /// how far from zero the argument of a gate may be
    clip: Option<f64>,
    /// whether the gate f is what i leaves of 1
    #[attr(default = false)]
    input_forget: bool,
    /// whether the gates see the memory: an argument has their weights, in the order i, o, f
    #[attr(default = false)]
    peepholes: bool,
    /// whether the last argument has the lengths of the sequences
    #[attr(default = false)]
    lengths: bool,
}

impl LstmSteps {
    fn sequences(&self) -> Sequences<'_> {
        Sequences {
            direction: &self.direction,
            activations: &self.activations,
            clip: self.clip,
            default: "sigmoid tanh tanh",
            has_lengths: self.lengths,
            gates: 4,
            states: 2,
            more: if self.peepholes { &[3] } else { &[] },
            is_packed: false,
        }
    }
}

impl Operator for LstmSteps {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        self.sequences().infer(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let by = self.sequences();
        let functions = by.functions().map_err(OpError::Unsupported)?;
        let weight = numbers(cx.arg(1)?)?;
        let peepholes = match self.peepholes {
            true => Some(numbers(cx.arg(4)?)?),
            false => None,
        };
        by.evaluate(cx, |way, x, states| {
            let [state, memory] = states else { return };
            let hidden = state.len();
            let gate = |part: usize, j: usize, function: usize, seen: Option<f64>| {
                let column = part * hidden + j;
                let mut sum = x[column];
                for (k, state) in state.iter().enumerate() {
                    sum += state * weight[(way * hidden + k) * 4 * hidden + column];
                }
                if let (Some(peepholes), Some(seen)) = (&peepholes, seen) {
                    sum += peepholes[way * 3 * hidden + column] * seen;
                }
                functions[way][function].value(by.clipped(sum))
            };
            let mut next = Vec::with_capacity(hidden);
            for (j, memory) in memory.iter_mut().enumerate() {
                let input = gate(0, j, 0, Some(*memory));
                let forget = match self.input_forget {
                    true => 1.0 - input,
                    false => gate(2, j, 0, Some(*memory)),
                };
                *memory = forget * *memory + input * gate(3, j, 1, None);
                let output = gate(1, j, 0, Some(*memory));
                next.push(output * functions[way][2].value(*memory));
            }
            *state = next;
        })
    }
}

/// One sequence after the other.
#[rule(compute)]
fn program(op: &LstmSteps, program: &mut Program) -> Result<()> {
    let program = &*program;
    walk(
        program,
        &op.sequences(),
        |way| Ok(way.rows("gates", 4)),
        |way, gates, step| {
            let [state, memory] = &way.held[..] else { return program.seq(&[]) };
            let taken = |sequence, at| way.taken(step, sequence, at);
            let products = way.product(step.group, gates, state, [0, 4], taken);
            let update = way.each(step.group, |sequence, j| {
                cell(way, [state, memory], [sequence, j], op.input_forget, |part, seen| {
                    let at = way.part(part, j);
                    let sum = gates.at(&[sequence, at]);
                    match seen {
                        Some(seen) if op.peepholes => sum + way.of(4, at) * seen,
                        _ => sum,
                    }
                })
            });
            program.seq(&[products, update])
        },
    )
}

/// Sets an element of the state and one of the memory of a sequence: `gate` says the argument of each part of the row, which may see the
/// memory.
pub(super) fn cell<'p>(
    way: &Way<'p>,
    [state, memory]: [&Buffer<'p>; 2],
    [sequence, j]: [Scalar<'p>; 2],
    is_coupled: bool,
    gate: impl Fn(i64, Option<Scalar<'p>>) -> Scalar<'p>,
) -> Stmt {
    let program = state.program();
    let (mut body, place) = (program.block(), [sequence, j]);
    let before = body.bind("before", memory.at(&place));
    let input = body.bind("input", way.gate(0, gate(0, Some(before))));
    let forget = match is_coupled {
        true => program.literal(input.dtype(), 1.0) - input,
        false => way.gate(0, gate(2, Some(before))),
    };
    let cell = way.gate(1, gate(3, None));
    let after = body.bind("after", forget * before + input * cell);
    let output = way.gate(0, gate(1, Some(after)));
    body.push(memory.set(&place, after));
    body.push(state.set(&place, output * way.functions[2].of_scalar(after)));
    body.finish()
}

/// `LSTM`: what the steps take from the data is a product of its own.
#[rule(import.onnx, key = "LSTM", since = 7)]
fn import(node: &mut Node<'_>) -> Outputs {
    let mut model = Model::of(node, 8, 4, 3)?;
    if let Some(weights) = node.optional(7) {
        model.more(weights);
        model.set("peepholes", true);
    }
    let is_coupled = node.flag("input_forget", false)?;
    model.set("input_forget", is_coupled);
    model.import(node, "nn.lstm_steps", 2)
}
