//! Conversion to another element type.
//!
//! ```ir
//! %y = cast(%x) { dtype = "i8" }    f32[n, 3]  =>  i8[n, 3]
//! ```
//!
//! Floats are truncated towards zero and saturate; integers are taken modulo the size of the type.

use tenon_plugin_api::op::prelude::*;

use crate::kernel::convert::convert;

/// Conversion to another element type; floats are truncated towards zero
#[op(name = "cast", pattern = "elementwise")]
pub struct Cast {
    /// the new element type, such as "f16"
    dtype: DType,
}

impl Operator for Cast {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(cx.tensor_type(self.dtype, cx.tensor(0)?.dims))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![convert(cx.arg(0)?, self.dtype)?])
    }
}
