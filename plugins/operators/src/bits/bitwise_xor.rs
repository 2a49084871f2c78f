//! The bits in which two integers differ.
//!
//! ```ir
//! %c = bitwise_xor(%a, %b)    i32[n, 3], i32[3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::integers;
use crate::kernel::rows::{each, zip};
use crate::program::elementwise::computes;

/// The bits in which they differ
#[op(name = "bitwise_xor", args = 2, pattern = "broadcast")]
pub struct BitwiseXor;

impl Operator for BitwiseXor {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        integers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_bits!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, |x, y| x ^ y)
        }))
    }
}

computes!(BitwiseXor, |a, b| a.call_with("bitxor", b));

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &BitwiseXor, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(BitwiseXor is "BitwiseXor" since 18);
