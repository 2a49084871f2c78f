//! The Gauss error function of each element.
//!
//! ```ir
//! %y = erf(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;

/// Gauss error function
#[op(name = "erf", pattern = "elementwise")]
pub struct Erf;

impl Operator for Erf {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::erf)
    }
}
