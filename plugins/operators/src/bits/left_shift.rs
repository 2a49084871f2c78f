//! The bits of integers moved to higher places.
//!
//! ```ir
//! %c = left_shift(%a, %b)    i32[n, 3], i32[3]  =>  i32[n, 3]
//! ```
//!
//! By as many places as there are bits, or by less than none, nothing is left.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::integers;
use crate::kernel::rows::{each, zip};
use crate::onnx::steps::not_among;
use crate::program::elementwise::computes;

/// The bits of the first moved up by as many places as the second says
#[op(name = "left_shift", args = 2, pattern = "broadcast")]
pub struct LeftShift;

impl Operator for LeftShift {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        integers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, |x, y| {
                let places = u32::try_from(y.to_i64()).ok();
                T::from_i64(places.and_then(|places| x.to_i64().checked_shl(places)).unwrap_or(0))
            })
        }))
    }
}

computes!(LeftShift, |a, b| a.call_with("shl", b));

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &LeftShift, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

/// `BitShift`, in either direction.
#[rule(import.onnx, key = "BitShift", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    match node.text("direction", "")?.as_str() {
        "LEFT" => node.same("left_shift"),
        "RIGHT" => node.same("right_shift"),
        other => not_among("direction", other, &["LEFT", "RIGHT"]),
    }
}
