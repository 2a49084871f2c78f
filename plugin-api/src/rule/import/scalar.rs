//! Single numbers: out of constants, and as bytes of a type of elements.

use half::{bf16, f16};

use crate::ir::DType;

/// A number in a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the kind of number it holds")]
pub enum Scalar {
    Float(f64),
    Int(i64),
    Bool(bool),
}

impl Scalar {
    /// As a float, if that is the same number.
    pub fn as_float(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value),
            Self::Int(value) => {
                const EXACT: i64 = 1 << 53;
                (-EXACT..=EXACT).contains(&value).then_some(value as f64)
            }
            Self::Bool(value) => Some(f64::from(u8::from(value))),
        }
    }

    /// The one element of this type that the bytes are; `None` where they are none, and of what no variant holds.
    pub fn of_bytes(dtype: DType, bytes: &[u8]) -> Option<Self> {
        let mut wide = [0u8; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let int = i64::from_le_bytes(wide);
        let unused = 64_u32.checked_sub(dtype.bits())?;
        Some(match dtype {
            DType::F64 => Self::Float(f64::from_le_bytes(wide)),
            DType::F32 => Self::Float(f64::from(f32::from_bits(int as u32))),
            DType::F16 => Self::Float(f16::from_bits(int as u16).to_f64()),
            DType::BF16 => Self::Float(bf16::from_bits(int as u16).to_f64()),
            DType::BOOL => Self::Bool(int != 0),
            _ if dtype.is_signed() => Self::Int(int << unused >> unused),
            _ if dtype.is_int() => Self::Int(i64::try_from(u64::from_le_bytes(wide)).ok()?),
            _ => return None,
        })
    }

    /// The bytes of an element of this type; `None` for a type of no numbers, or of parts of bytes.
    pub fn bytes_of(dtype: DType, value: f64) -> Option<Vec<u8>> {
        Some(match dtype {
            DType::F64 => value.to_le_bytes().to_vec(),
            DType::F32 => (value as f32).to_le_bytes().to_vec(),
            DType::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
            DType::BF16 => bf16::from_f64(value).to_le_bytes().to_vec(),
            _ if dtype.is_int() && dtype.bits() >= 8 => {
                (value as i64).to_le_bytes()[..dtype.bits() as usize / 8].to_vec()
            }
            _ => return None,
        })
    }
}
