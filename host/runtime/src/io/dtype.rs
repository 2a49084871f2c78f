//! The IR's dtypes in the terms of file formats.

use safetensors::Dtype;

use tenon_plugin_api::ir::DType;

const SAFETENSORS: &[(DType, Dtype)] = &[
    (DType::F64, Dtype::F64),
    (DType::F32, Dtype::F32),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F8E4M3, Dtype::F8_E4M3),
    (DType::F8E5M2, Dtype::F8_E5M2),
    (DType::F8E8M0, Dtype::F8_E8M0),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::U8, Dtype::U8),
    (DType::U16, Dtype::U16),
    (DType::U32, Dtype::U32),
    (DType::U64, Dtype::U64),
    (DType::BOOL, Dtype::BOOL),
];

/// The dtype of a safetensors element type.
pub fn from_safetensors(dtype: Dtype) -> Option<DType> {
    SAFETENSORS.iter().find(|pair| pair.1 == dtype).map(|pair| pair.0)
}

/// The safetensors element type of a dtype.
pub fn to_safetensors(dtype: DType) -> Option<Dtype> {
    SAFETENSORS.iter().find(|pair| pair.0 == dtype).map(|pair| pair.1)
}
