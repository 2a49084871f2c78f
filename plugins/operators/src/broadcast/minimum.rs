//! The smaller of two tensors, element by element.
//!
//! ```ir
//! %c = minimum(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
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

/// The smaller of two
#[op(name = "minimum", args = 2, pattern = "broadcast")]
pub struct Minimum;

impl Operator for Minimum {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, <T as Number>::smaller)
        }))
    }
}

computes!(Minimum, |a, b| a.min(b));

/// `min(x, x) => x`.
#[rule(simplify)]
fn simplify(_: &Minimum, at: &mut Site<'_>) -> Option<Expr> {
    equal_arguments(at)
}

follows_precision!(Minimum);

/// `g` to the smaller one, to the first of equal ones.
#[rule(gradient)]
fn gradient(_: &Minimum, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let a = at.masked("less_equal", at.arg(0), at.arg(1), at.grad());
    let b = at.masked("greater", at.arg(0), at.arg(1), at.grad());
    at.summed([a, b])
}

/// `Min` of any number of tensors.
#[rule(import.onnx, key = "Min", since = 6)]
fn import(node: &mut Node<'_>) -> Outputs {
    Ok(vec![each_with_next(node, "minimum")?])
}

/// `Min` of dimensions.
#[rule(import.onnx, key = "Min", since = 6, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::arithmetic(node, |node, a, b| Some(node.cx().dim_min(a, b)))
}
