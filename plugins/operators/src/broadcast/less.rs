//! Whether elements are less.
//!
//! ```ir
//! %c = less(%a, %b)    f32[n, 3], f32[3]  =>  bool[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::types::comparison;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::program::elementwise::computes;

/// Whether a < b
#[op(name = "less", args = 2, pattern = "broadcast")]
pub struct Less;

impl Operator for Less {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        comparison(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [u8]| {
            each(a, b, out, |x, y| (x < y) as u8)
        }))
    }
}

computes!(Less, |a, b| a.lt(b));

/// Nothing: truth values have no derivative.
#[rule(gradient)]
fn gradient(_: &Less, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(Less is "Less" since 7);

/// `Less` of dimensions.
#[rule(import.onnx, key = "Less", since = 7, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::comparison(node, fold::is_less)
}
