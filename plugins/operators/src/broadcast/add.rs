//! The sum of two tensors.
//!
//! ```ir
//! %c = add(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

use super::types::numbers;
use crate::kernel::rows::{each, zip};

/// a + b
#[op(name = "add", args = 2, pattern = "broadcast")]
pub struct Add;

impl Operator for Add {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, <T as Number>::add)
        }))
    }
}
