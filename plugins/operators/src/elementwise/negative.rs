//! The negative of each element.
//!
//! ```ir
//! %y = negative(%x)    i32[n, 3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

use super::types::number;
use crate::kernel::elements::map;

/// -x
#[op(name = "negative", pattern = "elementwise")]
pub struct Negative;

impl Operator for Negative {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => map(cx, |x: T| x.neg()))
    }
}
