//! Single numbers: as constants of a tensor's element type, and out of constants.

use half::{bf16, f16};

use crate::ir::{Constant, Context, DType};
use crate::onnx::import::builder::{Builder, Value};
use crate::onnx::import::error::{Problem, unsupported};

/// A constant without dimensions that has the element type of `like`.
pub(in crate::onnx::import) fn scalar_like(
    builder: &mut Builder,
    like: Value,
    value: f64,
) -> Result<Value, Problem> {
    let dtype = builder.dtype(like)?;
    scalar(builder, dtype, value)
}

/// A constant without dimensions.
pub(in crate::onnx::import) fn scalar(
    builder: &mut Builder,
    dtype: DType,
    value: f64,
) -> Result<Value, Problem> {
    let bytes = match dtype {
        DType::F64 => value.to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        DType::BF16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        _ if dtype.is_int() && dtype.bits() >= 8 => {
            (value as i64).to_le_bytes()[..dtype.bits() as usize / 8].to_vec()
        }
        _ => return unsupported(format!("the element type {dtype}")),
    };
    Ok(builder.constant_of(dtype, &[], bytes))
}

/// A number in a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::onnx::import) enum Number {
    Float(f64),
    Int(i64),
    Bool(bool),
}

impl Number {
    /// As a float, if that is the same number.
    pub(in crate::onnx::import) fn as_float(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value),
            Self::Int(value) => {
                const EXACT: i64 = 1 << 53;
                (-EXACT..=EXACT).contains(&value).then_some(value as f64)
            }
            Self::Bool(value) => Some(f64::from(u8::from(value))),
        }
    }
}

/// The number that `value` is, when it is a constant of one element.
pub(in crate::onnx::import) fn number(builder: &Builder, value: Value) -> Option<Number> {
    number_in(builder.cx(), &*builder.as_constant(value)?)
}

/// The number in a constant of one element.
pub(in crate::onnx::import) fn number_in(
    cx: &crate::ir::Cx,
    constant: &Constant,
) -> Option<Number> {
    let (dtype, shape) = cx.terms().static_tensor(constant.ty)?;
    if shape.iter().any(|&dim| dim != 1) {
        return None;
    }
    let bytes: &[u8] = &constant.data;
    let mut wide = [0u8; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let int = i64::from_le_bytes(wide);
    let unused = 64_u32.checked_sub(dtype.bits())?;
    Some(match dtype {
        DType::F64 => Number::Float(f64::from_le_bytes(wide)),
        DType::F32 => Number::Float(f64::from(f32::from_bits(int as u32))),
        DType::F16 => Number::Float(f16::from_bits(int as u16).to_f64()),
        DType::BF16 => Number::Float(bf16::from_bits(int as u16).to_f64()),
        DType::BOOL => Number::Bool(int != 0),
        _ if dtype.is_signed() => Number::Int(int << unused >> unused),
        _ if dtype.is_int() => Number::Int(i64::try_from(u64::from_le_bytes(wide)).ok()?),
        _ => return None,
    })
}
