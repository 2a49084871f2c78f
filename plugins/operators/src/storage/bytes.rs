//! The memory of a tensor, byte by byte.
//!
//! ```ir
//! %b = storage.bytes(%x)    i4[3, 5]  =>  u8[8]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::byte_count;

/// The bytes of a tensor; elements below a byte share it, the first in its lowest bits
#[op(name = "storage.bytes", effect = "shares")]
pub struct AsBytes;

impl Operator for AsBytes {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let TensorTy { dtype, dims } = cx.tensor(0)?;
        let Some(dims) = dims else { return cx.unsupported("a tensor of unknown rank") };
        Ok(cx.tensor_type(DType::U8, Some(&[byte_count(cx, dtype, dims)])))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let bytes = cx.arg(0)?.bytes();
        let tensor = Tensor::new(DType::U8, vec![bytes.len()], bytes.clone());
        Ok(tensor.into_iter().collect())
    }
}

/// The same memory.
#[rule(view)]
fn view(_: &AsBytes, at: &mut Site<'_>) -> Expr {
    at.call.expr
}

/// Of bytes that were made a tensor it is these.
#[rule(simplify)]
fn simplify(_: &AsBytes, at: &mut Site<'_>) -> Option<Expr> {
    let made = at.call_of(at.arg(0), "storage.from_bytes")?;
    at.same_type(made.args[0])
}
