//! Tensors of the file as constants of the IR.

use tenon_plugin_api::rule::import::LARGEST_RANK;
use thiserror::Error;

use super::error::Problem;
use crate::ir::{Bytes, Constant, Context, Cx, DType, Symbol};
use crate::onnx::{ElementType, TensorBytes, TensorData};

/// What the IR has no tensors of.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum NoTensor {
    #[error("{0} dimensions")]
    Rank(usize),
    #[error("the element type {name} (code {code})")]
    Code { name: &'static str, code: i32 },
}

impl From<NoTensor> for Problem {
    fn from(none: NoTensor) -> Self {
        Problem::Unsupported(none.to_string())
    }
}

/// The constant that a tensor is. Its bytes are not copied.
pub(super) fn constant_of(cx: &Cx, name: &str, data: TensorData) -> Result<Constant, NoTensor> {
    let dtype = dtype_of(data.element);
    check_rank(data.dims.len())?;
    let shape: Vec<i64> = data.dims.iter().map(|&dim| dim.cast_signed()).collect();
    let name = if name.is_empty() { Symbol(0) } else { cx.symbol(name) };
    let data = match data.bytes {
        TensorBytes::Mapped(slice) => slice.into(),
        TensorBytes::Owned(bytes) => Bytes::new(bytes),
    };
    Ok(Constant { ty: cx.static_tensor_type(dtype, &shape), name, data })
}

/// Says that there are too many dimensions.
pub(super) fn check_rank(rank: usize) -> Result<(), NoTensor> {
    match rank {
        0..=LARGEST_RANK => Ok(()),
        _ => Err(NoTensor::Rank(rank)),
    }
}

/// The element type for ONNX's code, or why there is none.
pub(super) fn dtype_of_code(code: i32) -> Result<DType, NoTensor> {
    let element = ElementType::from_code(code).map_err(|name| NoTensor::Code { name, code })?;
    Ok(dtype_of(element))
}

fn dtype_of(element: ElementType) -> DType {
    match element {
        ElementType::Float32 => DType::F32,
        ElementType::Float64 => DType::F64,
        ElementType::Float16 => DType::F16,
        ElementType::Bfloat16 => DType::BF16,
        ElementType::Uint8 => DType::U8,
        ElementType::Int8 => DType::I8,
        ElementType::Uint16 => DType::U16,
        ElementType::Int16 => DType::I16,
        ElementType::Uint32 => DType::U32,
        ElementType::Int32 => DType::I32,
        ElementType::Uint64 => DType::U64,
        ElementType::Int64 => DType::I64,
        ElementType::Bool => DType::BOOL,
        ElementType::Float8E4M3FN => DType::F8E4M3,
        ElementType::Float8E4M3FNUZ => DType::F8E4M3FNUZ,
        ElementType::Float8E5M2 => DType::F8E5M2,
        ElementType::Float8E5M2FNUZ => DType::F8E5M2FNUZ,
        ElementType::Float8E8M0 => DType::F8E8M0,
        ElementType::Float4E2M1 => DType::F4E2M1,
        ElementType::Uint4 => DType::U4,
        ElementType::Int4 => DType::I4,
        ElementType::Uint2 => DType::U2,
        ElementType::Int2 => DType::I2,
    }
}
