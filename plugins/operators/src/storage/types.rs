//! What operators on stored types ask of their arguments.

use tenon_plugin_api::op::InferCx;
use tenon_plugin_api::op::prelude::*;

/// The bytes of a tensor of these dimensions.
pub(super) fn byte_count(cx: &InferCx<'_>, dtype: DType, dims: &[Dim]) -> Dim {
    let bits = cx.dim_mul(cx.dim_product(dims), cx.dim(i64::from(dtype.bits())));
    cx.dim_floor_div(cx.dim_add(bits, cx.dim(7)), cx.dim(8))
}

/// Refuses an attribute `dtype` that is not one of those that are stored alone.
pub(super) fn check_storage(cx: &InferCx<'_>, dtype: DType) -> Result<()> {
    match dtype.is_storage() {
        true => Ok(()),
        false => {
            let reason = "it is a float of a byte or less, or an integer below a byte";
            cx.bad_attr("dtype", dtype.to_string(), reason)
        }
    }
}

/// Refuses an argument that is not the bytes of a tensor of `dims`.
pub(super) fn check_bytes(cx: &InferCx<'_>, dtype: DType, dims: Option<&[Dim]>) -> Result<()> {
    let found = cx.tensor_of_rank(0, 1)?;
    if found.dtype != DType::U8 {
        let expected = "u8".into();
        return Err(OpError::WrongDType { index: 0, expected, found: found.dtype });
    }
    match (found.dims, dims) {
        (Some(&[have]), Some(dims)) if cx.is_different(have, byte_count(cx, dtype, dims)) => {
            Err(cx.mismatch("the numbers of bytes", &[have], &[byte_count(cx, dtype, dims)]))
        }
        _ => Ok(()),
    }
}
