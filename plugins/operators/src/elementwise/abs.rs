//! The absolute value of each element.
//!
//! ```ir
//! %y = abs(%x)    i32[n, 3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

use super::types::number;
use crate::kernel::elements::map;

/// Absolute value
#[op(name = "abs", pattern = "elementwise")]
pub struct Abs;

impl Operator for Abs {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => map(cx, <T as Number>::abs))
    }
}
