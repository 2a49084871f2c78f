//! A power, element by element.
//!
//! ```ir
//! %c = power(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```
//!
//! Of integers it is exact, modulo the size of the type; a negative exponent gives the truncated quotient.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

use super::types::numbers;
use crate::kernel::rows::{each, zip};

/// a to the power of b
#[op(name = "power", args = 2, pattern = "broadcast")]
pub struct Power;

impl Operator for Power {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, <T as Number>::pow)
        }))
    }
}
