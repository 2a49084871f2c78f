//! Softmax along an axis.
//!
//! ```ir
//! %y = nn.softmax(%x) { axis = -1 }    f32[n, 10]  =>  f32[n, 10]
//! ```
//!
//! Each row is first lowered by its largest element, so that no exponential overflows.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::along_axis;
use super::programs;
use crate::onnx::along_axis::{along_axis, of_matrix};

/// exp(x) / sum(exp(x)) along an axis
#[op(name = "nn.softmax", pattern = "out_fusable")]
pub struct Softmax {
    /// the axis that is summed over
    #[attr(default = -1)]
    axis: i64,
}

impl Operator for Softmax {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        along_axis::infer(cx, self.axis)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        along_axis::evaluate(cx, self.axis, |row| {
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|x| *x = (*x - max).exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
        })
    }
}

/// One row after the other.
#[rule(compute)]
fn program(op: &Softmax, program: &mut Program) -> Result<()> {
    programs::softmax::softmax(program, op.axis, false)
}

/// Along the place of its axis.
#[rule(layout)]
fn layout(op: &Softmax, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axis("axis", op.axis)
}

/// `y (g - sum(g y))`.
#[rule(gradient)]
fn gradient(op: &Softmax, at: &mut Adjoint<'_>) -> Result<Grads> {
    let axis = at.axis(at.arg(0), op.axis)?;
    let product = at.mul(at.grad(), at.value());
    let sum = at.reduce("sum", product, &[axis], true);
    let rest = at.sub(at.grad(), sum);
    Ok(Grads::of([at.mul(at.value(), rest)]))
}

/// `Softmax` along one axis.
#[rule(import.onnx, key = "Softmax", since = 13)]
fn import(node: &mut Node<'_>) -> Outputs {
    along_axis(node, "nn.softmax")
}

/// `Softmax` before version 13.
#[rule(import.onnx, key = "Softmax", since = 1, until = 12)]
fn import_matrix(node: &mut Node<'_>) -> Outputs {
    of_matrix(node, "nn.softmax")
}
