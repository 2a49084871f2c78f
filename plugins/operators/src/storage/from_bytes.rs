//! Bytes as the memory of a tensor.
//!
//! ```ir
//! %x = storage.from_bytes(%b, %s) { dtype = "i4" }    u8[8], shape[3, 5]  =>  i4[3, 5]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::{check_bytes, check_storage};

/// A tensor of the shape of the second argument whose memory is the first
#[op(name = "storage.from_bytes", args = 2, effect = "shares")]
pub struct FromBytes {
    /// the element type: a float of a byte or less, or an integer below a byte
    dtype: DType,
}

impl Operator for FromBytes {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_storage(cx, self.dtype)?;
        let dims = cx.shape(1)?;
        check_bytes(cx, self.dtype, dims)?;
        Ok(cx.tensor_type(self.dtype, dims))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let bytes = cx.arg(0)?.bytes().clone();
        match Tensor::new(dtype, shape.to_vec(), bytes) {
            Some(tensor) => Ok(vec![tensor]),
            None => Err(OpError::Value(format!("these are not the bytes of {dtype}{shape:?}"))),
        }
    }
}

/// The same memory.
#[rule(view)]
fn view(_: &FromBytes, at: &mut Site<'_>) -> Expr {
    at.call.expr
}
