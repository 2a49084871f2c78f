//! A shape as a tensor.
//!
//! ```ir
//! %y = shape_to_tensor(%s)    shape[n, 3]  =>  i64[2]
//! ```
//!
//! A shape is evaluated as a tensor of its extents, so it is the argument itself.

use tenon_plugin_api::op::prelude::*;

/// A shape as a tensor of i64
#[op(name = "shape_to_tensor")]
pub struct ShapeToTensor;

impl Operator for ShapeToTensor {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        match cx.shape(0)? {
            Some(dims) => Ok(cx.static_tensor_type(DType::I64, &[dims.len() as i64])),
            None => Err(cx.wrong_arg(0, "a shape of known rank")),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}
