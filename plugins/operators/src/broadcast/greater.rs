//! Whether elements are greater.
//!
//! ```ir
//! %c = greater(%a, %b)    f32[n, 3], f32[3]  =>  bool[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::types::comparison;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::program::elementwise::computes;

/// Whether a > b
#[op(name = "greater", args = 2, pattern = "broadcast")]
pub struct Greater;

impl Operator for Greater {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        comparison(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [u8]| {
            each(a, b, out, |x, y| (x > y) as u8)
        }))
    }
}

computes!(Greater, |a, b| a.gt(b));

/// Nothing: truth values have no derivative.
#[rule(gradient)]
fn gradient(_: &Greater, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(Greater is "Greater" since 7);

/// `Greater` of dimensions.
#[rule(import.onnx, key = "Greater", since = 7, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::comparison(node, |node, a, b| fold::is_less(node, b, a))
}
