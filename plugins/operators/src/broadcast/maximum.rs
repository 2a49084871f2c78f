//! The larger of two tensors, element by element.
//!
//! ```ir
//! %c = maximum(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```
//!
//! What is not a number wins, as ONNX and NumPy have it.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::simplify::equal_arguments;
use super::types::numbers;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::onnx::steps::each_with_next;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// The larger of two
#[op(name = "maximum", args = 2, pattern = "broadcast")]
pub struct Maximum;

impl Operator for Maximum {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, <T as Number>::larger)
        }))
    }
}

computes!(Maximum, |a, b| a.max(b));

/// `max(x, x) => x`.
#[rule(simplify)]
fn simplify(_: &Maximum, at: &mut Site<'_>) -> Option<Expr> {
    equal_arguments(at)
}

follows_precision!(Maximum);

/// `g` to the larger one, to the first of equal ones.
#[rule(gradient)]
fn gradient(_: &Maximum, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let a = at.masked("greater_equal", at.arg(0), at.arg(1), at.grad());
    let b = at.masked("less", at.arg(0), at.arg(1), at.grad());
    at.summed([a, b])
}

/// `Max` of any number of tensors.
#[rule(import.onnx, key = "Max", since = 6)]
fn import(node: &mut Node<'_>) -> Outputs {
    Ok(vec![each_with_next(node, "maximum")?])
}

/// `Max` of dimensions.
#[rule(import.onnx, key = "Max", since = 6, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::arithmetic(node, |node, a, b| Some(node.cx().dim_max(a, b)))
}
