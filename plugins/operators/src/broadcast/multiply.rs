//! The product of two tensors, element by element.
//!
//! ```ir
//! %c = multiply(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::simplify::{neutral, zeros};
use super::types::numbers;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// a * b
#[op(name = "multiply", args = 2, pattern = "broadcast")]
pub struct Multiply;

impl Operator for Multiply {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, <T as Number>::mul)
        }))
    }
}

computes!(Multiply, |a, b| a * b);

/// `x * 1 => x`; `x * 0 => 0`, of integers.
#[rule(simplify)]
fn simplify(_: &Multiply, at: &mut Site<'_>) -> Option<Expr> {
    neutral(at, true, |x| x == 1.0).or_else(|| {
        let [a, b] = at.args()?;
        let is_zero = at.splat(a) == Some(0.0) || at.splat(b) == Some(0.0);
        is_zero.then(|| zeros(at)).flatten()
    })
}

follows_precision!(Multiply);

/// `g b`, `g a`.
#[rule(gradient)]
fn gradient(_: &Multiply, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let a = at.mul(at.grad(), at.arg(1));
    let b = at.mul(at.grad(), at.arg(0));
    at.summed([a, b])
}

crate::onnx::same!(Multiply is "Mul" since 7);

/// `Mul` of dimensions.
#[rule(import.onnx, key = "Mul", since = 7, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::arithmetic(node, |node, a, b| Some(node.cx().dim_mul(a, b)))
}
