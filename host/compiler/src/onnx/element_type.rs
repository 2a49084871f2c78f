//! ONNX's element types, by the codes that files use.

use crate::onnx::proto::Storage;

/// An element type that tensors can be read with. Elements below a byte share it, the first in its lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    Float32,
    Uint8,
    Int8,
    Uint16,
    Int16,
    Int32,
    Int64,
    Bool,
    Float16,
    Float64,
    Uint32,
    Uint64,
    Bfloat16,
    Float8E4M3FN,
    Float8E4M3FNUZ,
    Float8E5M2,
    Float8E5M2FNUZ,
    Float8E8M0,
    Uint4,
    Int4,
    Float4E2M1,
    Uint2,
    Int2,
}

impl ElementType {
    /// The type for a code, or for one that is not supported its name.
    pub fn from_code(code: i32) -> Result<Self, &'static str> {
        Ok(match code {
            1 => Self::Float32,
            2 => Self::Uint8,
            3 => Self::Int8,
            4 => Self::Uint16,
            5 => Self::Int16,
            6 => Self::Int32,
            7 => Self::Int64,
            9 => Self::Bool,
            10 => Self::Float16,
            11 => Self::Float64,
            12 => Self::Uint32,
            13 => Self::Uint64,
            16 => Self::Bfloat16,
            17 => Self::Float8E4M3FN,
            18 => Self::Float8E4M3FNUZ,
            19 => Self::Float8E5M2,
            20 => Self::Float8E5M2FNUZ,
            21 => Self::Uint4,
            22 => Self::Int4,
            23 => Self::Float4E2M1,
            24 => Self::Float8E8M0,
            25 => Self::Uint2,
            26 => Self::Int2,
            0 => return Err("undefined"),
            8 => return Err("string"),
            14 => return Err("complex64"),
            15 => return Err("complex128"),
            27 => return Err("float6e2m3"),
            28 => return Err("float6e3m2"),
            _ => return Err("unknown"),
        })
    }

    /// ONNX's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Uint8 => "uint8",
            Self::Int8 => "int8",
            Self::Uint16 => "uint16",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Bool => "bool",
            Self::Float16 => "float16",
            Self::Float64 => "float64",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Bfloat16 => "bfloat16",
            Self::Float8E4M3FN => "float8e4m3fn",
            Self::Float8E4M3FNUZ => "float8e4m3fnuz",
            Self::Float8E5M2 => "float8e5m2",
            Self::Float8E5M2FNUZ => "float8e5m2fnuz",
            Self::Float8E8M0 => "float8e8m0",
            Self::Uint4 => "uint4",
            Self::Int4 => "int4",
            Self::Float4E2M1 => "float4e2m1",
            Self::Uint2 => "uint2",
            Self::Int2 => "int2",
        }
    }

    /// Bits per element.
    pub(super) fn bits(self) -> usize {
        match self {
            Self::Uint2 | Self::Int2 => 2,
            Self::Uint4 | Self::Int4 | Self::Float4E2M1 => 4,
            Self::Bool
            | Self::Uint8
            | Self::Int8
            | Self::Float8E4M3FN
            | Self::Float8E4M3FNUZ
            | Self::Float8E5M2
            | Self::Float8E5M2FNUZ
            | Self::Float8E8M0 => 8,
            Self::Uint16 | Self::Int16 | Self::Float16 | Self::Bfloat16 => 16,
            Self::Float32 | Self::Int32 | Self::Uint32 => 32,
            Self::Float64 | Self::Int64 | Self::Uint64 => 64,
        }
    }

    /// Bytes of so many elements; `None` where they cannot be counted.
    pub fn bytes_of(self, count: usize) -> Option<usize> {
        count.checked_mul(self.bits()).map(|bits| bits.div_ceil(8))
    }

    /// Bytes of one number where elements are written as such: those below a byte are written as many as fill one.
    pub(super) fn unit(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// The field that holds its elements when they are written as numbers.
    pub(super) fn storage(self) -> Storage {
        match self {
            Self::Float32 => Storage::Float,
            Self::Float64 => Storage::Double,
            Self::Int64 => Storage::Int64,
            Self::Uint32 | Self::Uint64 => Storage::Uint64,
            Self::Uint8
            | Self::Int8
            | Self::Uint16
            | Self::Int16
            | Self::Int32
            | Self::Bool
            | Self::Float16
            | Self::Bfloat16
            | Self::Float8E4M3FN
            | Self::Float8E4M3FNUZ
            | Self::Float8E5M2
            | Self::Float8E5M2FNUZ
            | Self::Float8E8M0
            | Self::Uint4
            | Self::Int4
            | Self::Float4E2M1
            | Self::Uint2
            | Self::Int2 => Storage::Int32,
        }
    }
}
