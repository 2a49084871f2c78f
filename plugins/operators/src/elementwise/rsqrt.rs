//! The reciprocal square root of each element.
//!
//! ```ir
//! %y = rsqrt(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;

/// 1 / sqrt(x)
#[op(name = "rsqrt", pattern = "elementwise")]
pub struct Rsqrt;

impl Operator for Rsqrt {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &|x| 1.0 / x.sqrt())
    }
}
