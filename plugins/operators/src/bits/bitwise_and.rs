//! The bits that both of two integers have.
//!
//! ```ir
//! %c = bitwise_and(%a, %b)    i32[n, 3], i32[3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::integers;
use crate::broadcast::simplify::equal_arguments;
use crate::kernel::rows::{each, zip};
use crate::program::elementwise::computes;

/// The bits that both have
#[op(name = "bitwise_and", args = 2, pattern = "broadcast")]
pub struct BitwiseAnd;

impl Operator for BitwiseAnd {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        integers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_bits!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, |x, y| x & y)
        }))
    }
}

computes!(BitwiseAnd, |a, b| a.call_with("bitand", b));

/// `x & x => x`.
#[rule(simplify)]
fn simplify(_: &BitwiseAnd, at: &mut Site<'_>) -> Option<Expr> {
    equal_arguments(at)
}

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &BitwiseAnd, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(BitwiseAnd is "BitwiseAnd" since 18);
