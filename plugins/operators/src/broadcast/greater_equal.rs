//! Whether elements are not less.
//!
//! ```ir
//! %c = greater_equal(%a, %b)    f32[n, 3], f32[3]  =>  bool[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::types::comparison;
use crate::kernel::rows::{each, zip};
use crate::program::elementwise::computes;

/// Whether a >= b
#[op(name = "greater_equal", args = 2, pattern = "broadcast")]
pub struct GreaterEqual;

impl Operator for GreaterEqual {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        comparison(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [u8]| {
            each(a, b, out, |x, y| (x >= y) as u8)
        }))
    }
}

computes!(GreaterEqual, |a, b| a.ge(b));

/// Nothing: truth values have no derivative.
#[rule(gradient)]
fn gradient(_: &GreaterEqual, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(GreaterEqual is "GreaterOrEqual" since 12);
