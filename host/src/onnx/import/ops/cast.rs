//! Conversions of element types.

use crate::ir::DType;
use crate::onnx::import::builder::{Builder, Value};
use crate::onnx::import::error::{Problem, invalid};
use crate::onnx::import::node::NodeCx;
use crate::onnx::import::tensor::dtype_of_code;

/// `Cast` to the element type in an attribute.
pub(in crate::onnx::import) fn cast(cx: &mut NodeCx<'_, '_>) -> Result<Vec<Value>, Problem> {
    let x = cx.input(0)?;
    let dtype = target(cx)?;
    Ok(vec![cast_to(cx, x, dtype)?])
}

/// `CastLike`: to the element type of the second input.
pub(in crate::onnx::import) fn cast_like(cx: &mut NodeCx<'_, '_>) -> Result<Vec<Value>, Problem> {
    let (x, like) = (cx.input(0)?, cx.input(1)?);
    cx.ignore("saturate");
    cx.ignore("round_mode");
    let dtype = cx.dtype(like)?;
    Ok(vec![cast_to(cx, x, dtype)?])
}

/// The element type that a `Cast` converts to.
pub(in crate::onnx::import) fn target(cx: &NodeCx<'_, '_>) -> Result<DType, Problem> {
    // Both are about 8-bit floats alone.
    cx.ignore("saturate");
    cx.ignore("round_mode");
    let Some(code) = cx.int("to")? else { return invalid("its attribute `to` is missing") };
    dtype_of_code(i32::try_from(code).unwrap_or(-1)).map_err(Problem::Unsupported)
}

/// `value` with elements of `dtype`; itself if it has these.
pub(in crate::onnx::import) fn cast_to(
    builder: &mut Builder,
    value: Value,
    dtype: DType,
) -> Result<Value, Problem> {
    if builder.dtype(value)? == dtype {
        return Ok(value);
    }
    builder.call("cast", &[value], &[("dtype", dtype.to_string().into())])
}
