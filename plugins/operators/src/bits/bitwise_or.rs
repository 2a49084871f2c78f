//! The bits that one of two integers has.
//!
//! ```ir
//! %c = bitwise_or(%a, %b)    i32[n, 3], i32[3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::integers;
use crate::broadcast::simplify::equal_arguments;
use crate::kernel::rows::{each, zip};
use crate::program::elementwise::computes;

/// The bits that one has
#[op(name = "bitwise_or", args = 2, pattern = "broadcast")]
pub struct BitwiseOr;

impl Operator for BitwiseOr {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        integers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_bits!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, |x, y| x | y)
        }))
    }
}

computes!(BitwiseOr, |a, b| a.call_with("bitor", b));

/// `x | x => x`.
#[rule(simplify)]
fn simplify(_: &BitwiseOr, at: &mut Site<'_>) -> Option<Expr> {
    equal_arguments(at)
}

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &BitwiseOr, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(BitwiseOr is "BitwiseOr" since 18);
