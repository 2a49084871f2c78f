//! The steps of a network with a long memory (LSTM) whose weight is of bytes.
//!
//! ```ir
//! %y = nn.quantized_lstm_steps(%x, %r, %h, %c, %s, %t, %z)    f32[k, n, 1, 32], i8[1, 1, 2, 32, 4], f32[1, n, 8], f32[1, n, 8], f32[1, 32], i32[1, 32], i32[1, 32]  =>  (f32[k, 1, n, 8], f32[1, n, 8], f32[1, n, 8])
//! ```
//!
//! `(r[d, c / w, k / 4, c % w, k % 4] - z[d, c]) s[d, c]`, with tiles of w columns, is the weight in row k and column c, and `t[d, c]`
//! is the sum of the bytes of the column. At each step the state of a sequence is quantized, too (`bytes.rs`); the rest is as `nn.lstm_steps` does it. ONNX Runtime
//! takes one scale for the states of all sequences that a thread has, here each has its own.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::bytes::{Bytes, quantized};
use super::lstm_steps::cell;
use super::programs::walk;
use super::sequence::{Sequences, numbers};

/// The argument with the scales of the columns.
const SCALES: usize = 4;

/// The states of a long short-term memory along sequences, whose products are those of bytes, and the last ones
#[op(name = "nn.quantized_lstm_steps", args = 7..=8)]
pub struct QuantizedLstmSteps {
    /// forward, reverse or bidirectional
    #[attr(default = "forward", one_of = ["forward", "reverse", "bidirectional"])]
    direction: String,
    /// the functions f, g, h of each direction, as those of `nn.lstm_steps`
    #[attr(default = "")]
    activations: String,
    /// how far from zero the argument of a gate may be
    clip: Option<f64>,
    /// whether the gate f is what i leaves of 1
    #[attr(default = false)]
    input_forget: bool,
    /// whether the last argument has the lengths of the sequences
    #[attr(default = false)]
    lengths: bool,
}

impl QuantizedLstmSteps {
    fn sequences(&self) -> Sequences<'_> {
        Sequences {
            direction: &self.direction,
            activations: &self.activations,
            clip: self.clip,
            default: "sigmoid tanh tanh",
            has_lengths: self.lengths,
            gates: 4,
            states: 2,
            more: &[4, 4, 4],
            is_packed: true,
        }
    }
}

impl Operator for QuantizedLstmSteps {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        match cx.tensor(0)?.dtype {
            DType::F32 => self.sequences().infer(cx),
            found => Err(OpError::WrongDType { index: 0, expected: "f32".into(), found }),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let by = self.sequences();
        let functions = by.functions().map_err(OpError::Unsupported)?;
        let weight = cx.arg(1)?;
        let bytes = weight.elements::<i8>();
        let &[_, tiles, quads, width, depth] = weight.shape() else {
            return Err(OpError::Unsupported("a weight of five dimensions is expected".into()));
        };
        let scales = numbers(cx.arg(SCALES)?)?;
        let [sums, zeros] = [1, 2].map(|behind| cx.arg(SCALES + behind));
        let (sums, zeros) = (sums?.elements::<i32>(), zeros?.elements::<i32>());
        let byte = |way: usize, k: usize, column: usize| {
            let quad = ((way * tiles + column / width) * quads + k / depth) * width;
            i64::from(bytes[(quad + column % width) * depth + k % depth])
        };
        by.evaluate(cx, |way, x, states| {
            let [state, memory] = states else { return };
            let hidden = state.len();
            let (row, scale, middle) = quantized(state);
            let gate = |part: usize, j: usize, function: usize| {
                let column = part * hidden + j;
                let [sum_of, zero] =
                    [&sums, &zeros].map(|each| i64::from(each[way * 4 * hidden + column]));
                let products = row.iter().enumerate().map(|(k, q)| q * byte(way, k, column));
                let moved = row.iter().sum::<i64>() - middle * hidden as i64;
                let sum = products.sum::<i64>() - middle * sum_of - zero * moved;
                let scale = f64::from(scale) * scales[way * 4 * hidden + column];
                // Sums are those of i32, whatever the arguments say.
                let sum = f64::from(sum as i32);
                functions[way][function].value(by.clipped(x[column] + sum * scale))
            };
            let mut next = Vec::with_capacity(hidden);
            for (j, memory) in memory.iter_mut().enumerate() {
                let input = gate(0, j, 0);
                let forget = if self.input_forget { 1.0 - input } else { gate(2, j, 0) };
                *memory = forget * *memory + input * gate(3, j, 1);
                next.push(gate(1, j, 0) * functions[way][2].value(*memory));
            }
            *state = next;
        })
    }
}

/// One group of sequences after the other.
#[rule(compute)]
fn program(op: &QuantizedLstmSteps, program: &mut Program) -> Result<()> {
    let program = &*program;
    walk(
        program,
        &op.sequences(),
        |way| Bytes::new(program, way),
        |way, bytes, step| {
            let products = bytes.product(way, step.group);
            let [state, memory] = &way.held[..] else { return program.seq(&[]) };
            let update = way.each(step.group, |sequence, j| {
                cell(way, [state, memory], [sequence, j], op.input_forget, |part, _| {
                    let at = way.part(part, j);
                    way.taken(step, sequence, at) + bytes.sum(way, SCALES, [sequence, at])
                })
            });
            program.seq(&[products, update])
        },
    )
}
