//! Reference evaluation of the core operators: plain loops that say what each operator means.
//!
//! They share nothing with the code generator. Floats are summed and put through functions in f64 and
//! rounded once; integers wrap around. Large tensors are worked on by several threads.

pub(crate) mod binary;
pub(crate) mod conv;
pub(crate) mod group_norm;
pub(crate) mod matmul;
pub(crate) mod normalize;
mod number;
mod parallel;
pub(crate) mod pool;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod slice;
mod space;
mod strided;
pub(crate) mod unary;

pub(crate) use number::{int_pow, shorten, sigmoid};

use crate::ir::DType;
use crate::ops::OpError;

type Result<T> = std::result::Result<T, OpError>;

/// Elements that one thread works on at least.
const GRAIN: usize = 1 << 14;

fn unsupported(dtype: DType) -> OpError {
    OpError::Unsupported(format!("elements of {dtype} cannot be evaluated"))
}

/// Runs a body with the element type of a number.
macro_rules! with_number {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $t = f32;
                $body
            }
            DType::F64 => {
                type $t = f64;
                $body
            }
            DType::F16 => {
                type $t = half::f16;
                $body
            }
            DType::BF16 => {
                type $t = half::bf16;
                $body
            }
            DType::I8 => {
                type $t = i8;
                $body
            }
            DType::I16 => {
                type $t = i16;
                $body
            }
            DType::I32 => {
                type $t = i32;
                $body
            }
            DType::I64 => {
                type $t = i64;
                $body
            }
            DType::U8 | DType::BOOL => {
                type $t = u8;
                $body
            }
            DType::U16 => {
                type $t = u16;
                $body
            }
            DType::U32 => {
                type $t = u32;
                $body
            }
            DType::U64 => {
                type $t = u64;
                $body
            }
            other => Err($crate::eval::kernels::unsupported(other)),
        }
    };
}

/// Runs a body with the element type of a float.
macro_rules! with_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $t = f32;
                $body
            }
            DType::F64 => {
                type $t = f64;
                $body
            }
            DType::F16 => {
                type $t = half::f16;
                $body
            }
            DType::BF16 => {
                type $t = half::bf16;
                $body
            }
            other => Err($crate::eval::kernels::unsupported(other)),
        }
    };
}

/// Runs a body with an unsigned integer of the size of an element, for what only moves elements.
macro_rules! with_bits {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.bits() {
            8 => {
                type $t = u8;
                $body
            }
            16 => {
                type $t = u16;
                $body
            }
            32 => {
                type $t = u32;
                $body
            }
            64 => {
                type $t = u64;
                $body
            }
            _ => Err($crate::eval::kernels::unsupported($dtype)),
        }
    };
}

use {with_bits, with_float, with_number};
