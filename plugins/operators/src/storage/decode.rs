//! The elements of a tensor of a stored type from its bytes.
//!
//! ```ir
//! %y = storage.decode(%b, %s) { dtype = "i4" }        u8[8], shape[3, 5]  =>  i8[3, 5]
//! %y = storage.decode(%b, %s) { dtype = "f8e4m3" }    u8[15], shape[3, 5]  =>  f32[3, 5]
//! ```
//!
//! A float's exponent and mantissa, moved to where those of an f32 are, are the number but for a power of two.

use tenon_plugin_api::ir::narrow::NarrowFloat;
use tenon_plugin_api::ir::{BinaryOp, Context};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::Scalar;
use tenon_plugin_api::rule::prelude::*;

use super::codes::{decoded, decoded_dtype};
use super::encode::bits_as;
use super::types::{check_bytes, check_storage};
use crate::program::index::regroup;

/// The elements of a stored type in the shape of the second argument: floats as f32, integers as i8 or u8
#[op(name = "storage.decode", args = 2, pattern = "injective")]
pub struct Decode {
    /// the element type that the bytes are of
    dtype: DType,
}

impl Operator for Decode {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_storage(cx, self.dtype)?;
        let dims = cx.shape(1)?;
        check_bytes(cx, self.dtype, dims)?;
        Ok(cx.tensor_type(decoded_dtype(self.dtype), dims))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![decoded(self.dtype, cx.arg(0)?.bytes(), cx.out()?.1)?])
    }
}

/// The bits of an element out of its byte, and what they stand for.
#[rule(compute)]
fn program(op: &Decode, program: &mut Program) {
    let (input, out) = (program.input(0), program.output(0));
    program.set(&out, |indices| {
        let count = program.cx().dim_product(out.shape());
        let flat = regroup(program, indices, out.shape(), &[count])[0];
        let bits = i64::from(op.dtype.bits());
        let per_byte = 8 / bits;
        let code = match per_byte {
            1 => input.at(&[flat]).cast(DType::I32),
            _ => {
                let byte = input.at(&[flat / per_byte]).cast(DType::I32);
                let shift = (flat % per_byte * bits).cast(DType::I32);
                let mask = program.int(DType::I32, (1 << bits) - 1);
                byte.call_with("shr", shift).call_with("bitand", mask)
            }
        };
        match NarrowFloat::of(op.dtype) {
            Some(format) => float(format, code),
            None if op.dtype.is_signed() => {
                let sign = 1 << (bits - 1);
                (code.call_with("bitxor", program.int(DType::I32, sign)) - sign).cast(DType::I8)
            }
            None => code.cast(DType::U8),
        }
    });
}

/// The float that a code stands for.
fn float(format: NarrowFloat, code: Scalar<'_>) -> Scalar<'_> {
    let program = code.program();
    let int = |value: i64| program.int(DType::I32, value);
    let real = |value: f64| program.literal(DType::F32, value);
    let sign = i64::from(format.sign);
    let magnitude = code.call_with("bitand", int(0xff & !sign));
    let moved = magnitude.call_with("shl", int(23 - i64::from(format.mantissa)));
    let mut value = bits_as(moved, DType::F32) * real(2f64.powi(127 - format.bias));
    if sign == 0 {
        value = code.binary(BinaryOp::Eq, 0).select(real(2f64.powi(-format.bias)), value);
    }
    if let Some(infinity) = format.infinity {
        let is_infinite = magnitude.binary(BinaryOp::Eq, i64::from(infinity));
        value = is_infinite.select(real(f64::INFINITY), value);
    }
    if sign != 0 {
        let place = 24 + i64::from(format.sign.leading_zeros());
        let moved = code.call_with("bitand", int(sign)).call_with("shl", int(place));
        let bits = bits_as(value, DType::I32).call_with("bitor", moved);
        value = bits_as(bits, DType::F32);
    }
    match format.nan {
        None => value,
        Some(nan) => {
            let is_nan = match format.has_negative_zero || sign == 0 {
                true => magnitude.gt(i64::from(format.infinity.unwrap_or(format.largest))),
                false => code.binary(BinaryOp::Eq, i64::from(nan)),
            };
            is_nan.select(real(f64::NAN), value)
        }
    }
}
