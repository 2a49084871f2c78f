//! Each element rounded up.
//!
//! ```ir
//! %y = ceil(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;

/// The smallest integer that is not below
#[op(name = "ceil", pattern = "elementwise")]
pub struct Ceil;

impl Operator for Ceil {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &f64::ceil)
    }
}
