//! The logarithm of softmax along an axis.
//!
//! ```ir
//! %y = nn.log_softmax(%x) { axis = -1 }    f32[n, 10]  =>  f32[n, 10]
//! ```
//!
//! Each row is first lowered by its largest element, so that no exponential overflows.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::along_axis;
use super::programs;
use crate::onnx::along_axis::{along_axis, of_matrix};

/// x - log(sum(exp(x))) along an axis
#[op(name = "nn.log_softmax", pattern = "out_fusable")]
pub struct LogSoftmax {
    /// the axis that is summed over
    #[attr(default = -1)]
    axis: i64,
}

impl Operator for LogSoftmax {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        along_axis::infer(cx, self.axis)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        along_axis::evaluate(cx, self.axis, |row| {
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
            row.iter_mut().for_each(|x| *x -= max + sum.ln());
        })
    }
}

/// One row after the other.
#[rule(compute)]
fn program(op: &LogSoftmax, program: &mut Program) -> Result<()> {
    programs::softmax::softmax(program, op.axis, true)
}

/// Along the place of its axis.
#[rule(layout)]
fn layout(op: &LogSoftmax, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axis("axis", op.axis)
}

/// `g - exp(y) sum(g)`.
#[rule(gradient)]
fn gradient(op: &LogSoftmax, at: &mut Adjoint<'_>) -> Result<Grads> {
    let axis = at.axis(at.arg(0), op.axis)?;
    let sum = at.reduce("sum", at.grad(), &[axis], true);
    let softmax = at.apply("exp", &[at.value()]);
    let product = at.mul(softmax, sum);
    Ok(Grads::of([at.sub(at.grad(), product)]))
}

/// `LogSoftmax` along one axis.
#[rule(import.onnx, key = "LogSoftmax", since = 13)]
fn import(node: &mut Node<'_>) -> Outputs {
    along_axis(node, "nn.log_softmax")
}

/// `LogSoftmax` before version 13.
#[rule(import.onnx, key = "LogSoftmax", since = 1, until = 12)]
fn import_matrix(node: &mut Node<'_>) -> Outputs {
    of_matrix(node, "nn.log_softmax")
}
