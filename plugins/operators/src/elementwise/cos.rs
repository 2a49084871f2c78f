//! The cosine of each element, an angle in radians.
//!
//! ```ir
//! %y = cos(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;

/// Cosine
#[op(name = "cos", pattern = "elementwise")]
pub struct Cos;

impl Operator for Cos {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::cos)
    }
}
