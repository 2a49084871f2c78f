//! The same elements in another shape.
//!
//! ```ir
//! %y = reshape(%x, %s)    f32[n, 6], shape[n, 2, 3]  =>  f32[n, 2, 3]
//! ```

use tenon_plugin_api::op::prelude::*;

use super::same_elements::same_elements;

/// The same elements in the shape of the second argument
#[op(name = "reshape", args = 2, pattern = "injective")]
pub struct Reshape;

impl Operator for Reshape {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let shape = cx.shape(1)?;
        if let (Some(dims), Some(shape)) = (tensor.dims, shape) {
            let count =
                |dims: &[Dim]| dims.iter().fold(cx.dim(1), |count, &dim| cx.dim_mul(count, dim));
            if cx.is_different(count(dims), count(shape)) {
                return Err(cx.mismatch("the numbers of elements", dims, shape));
            }
        }
        Ok(cx.tensor_type(tensor.dtype, shape))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        same_elements(cx)
    }
}
