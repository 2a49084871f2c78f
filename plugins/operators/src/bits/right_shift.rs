//! The bits of integers moved to lower places.
//!
//! ```ir
//! %c = right_shift(%a, %b)    i32[n, 3], i32[3]  =>  i32[n, 3]
//! ```
//!
//! The places at the top get the sign of what has one. By as many places as there are bits, or by less than none, nothing
//! but it is left.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::integers;
use crate::kernel::rows::{each, zip};
use crate::program::elementwise::computes;

/// The bits of the first moved down by as many places as the second says
#[op(name = "right_shift", args = 2, pattern = "broadcast")]
pub struct RightShift;

impl Operator for RightShift {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        integers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let dtype = cx.arg(0)?.dtype();
        if dtype.is_signed() {
            return with_number!(dtype, T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
                each(a, b, out, |x, y| {
                    let places = u32::try_from(y.to_i64()).unwrap_or(63).min(63);
                    T::from_i64(x.to_i64() >> places)
                })
            }));
        }
        with_number!(dtype, T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, |x, y| {
                let places = u32::try_from(y.to_i64()).ok();
                let bits = x.to_i64().cast_unsigned();
                let moved = places.and_then(|places| bits.checked_shr(places)).unwrap_or(0);
                T::from_i64(moved.cast_signed())
            })
        }))
    }
}

computes!(RightShift, |a, b| {
    let all = i64::from(b.dtype().bits()) - 1;
    let places =
        if b.dtype().is_signed() { b.lt(0).select(b.program().int(b.dtype(), all), b) } else { b };
    a.call_with("shr", places)
});

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &RightShift, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}
