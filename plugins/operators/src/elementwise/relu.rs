//! The rectified linear unit.
//!
//! ```ir
//! %y = nn.relu(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! What is not a number stays so.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

use super::types::number;
use crate::kernel::elements::map;

/// The larger of each element and zero
#[op(name = "nn.relu", pattern = "elementwise")]
pub struct Relu;

impl Operator for Relu {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => map(cx, |x: T| x.larger(T::default())))
    }
}
