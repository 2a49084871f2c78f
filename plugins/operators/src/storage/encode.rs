//! The bytes of a tensor of a stored type from its elements.
//!
//! ```ir
//! %b = storage.encode(%x) { dtype = "i4" }    f32[3, 5]  =>  u8[8]
//! ```
//!
//! A float is counted in steps of the last place that its exponent leaves; codes are in the order of the numbers, so what is
//! rounded up to the next power of two carries into the exponent.

use tenon_plugin_api::ir::narrow::{NarrowFloat, Rounding};
use tenon_plugin_api::ir::{BinaryOp, Build, BuildPrim, Bytes, Context};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Extent, Scalar};
use tenon_plugin_api::rule::prelude::*;

use super::codes::{encoded, rounding};
use super::types::{byte_count, check_storage};
use crate::program::index::regroup;

/// Elements as the bytes of a tensor of a stored type: floats are rounded, or truncated to integers and clipped; integers are
/// taken modulo the size of the type
#[op(name = "storage.encode", pattern = "injective")]
pub struct Encode {
    /// the element type that is stored
    dtype: DType,
    /// whether a float that is too large becomes the largest one; infinity, or not a number, where it does not
    #[attr(default = true)]
    saturate: bool,
    /// which neighbour a float between two becomes
    #[attr(default = "nearest", one_of = ["nearest", "up", "down"])]
    rounding: String,
}

impl Operator for Encode {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_storage(cx, self.dtype)?;
        let TensorTy { dtype, dims } = cx.tensor(0)?;
        if dtype.is_storage() {
            let expected = "a type that is computed with".into();
            return Err(OpError::WrongDType { index: 0, expected, found: dtype });
        }
        let Some(dims) = dims else { return cx.unsupported("a tensor of unknown rank") };
        Ok(cx.tensor_type(DType::U8, Some(&[byte_count(cx, self.dtype, dims)])))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let bytes = encoded(cx.arg(0)?, self.dtype, self.saturate, rounding(&self.rounding))?;
        Ok(Tensor::new(DType::U8, vec![bytes.len()], Bytes::new(bytes)).into_iter().collect())
    }
}

/// A byte of as many elements as it holds.
#[rule(compute)]
fn program(op: &Encode, program: &mut Program) {
    let (input, out) = (program.input(0), program.output(0));
    program.set(&out, |indices| {
        let count = program.cx().dim_product(input.shape());
        let bits = i64::from(op.dtype.bits());
        let per_byte = 8 / bits;
        let code = |place: i64| {
            let flat = indices[0] * per_byte + place;
            let last = Extent::index(count, program) - 1;
            let at = if per_byte == 1 { flat } else { flat.min(last) };
            let code = op.code(input.wide(&regroup(program, &[at], &[count], input.shape())));
            let code = match place {
                0 => code,
                _ => last.ge(flat).select(code, program.int(DType::I32, 0)),
            };
            code.call_with("shl", program.int(DType::I32, place * bits))
        };
        let byte = (1..per_byte).fold(code(0), |byte, place| byte.call_with("bitor", code(place)));
        byte.cast(DType::U8)
    });
}

impl Encode {
    /// The code of an element, as i32.
    fn code<'p>(&self, x: Scalar<'p>) -> Scalar<'p> {
        let program = x.program();
        let Some(format) = NarrowFloat::of(self.dtype) else {
            let x = match x.dtype().is_float() {
                true => {
                    let (low, high) = self.dtype.int_bounds();
                    x.cast(DType::I32).max(low).min(high)
                }
                false => x.cast(DType::I32),
            };
            let mask = (1 << self.dtype.bits()) - 1;
            return x.call_with("bitand", program.int(DType::I32, mask));
        };
        self.float_code(format, x.cast(DType::F64)).cast(DType::I32)
    }

    /// The code of a float, as i64.
    fn float_code<'p>(&self, format: NarrowFloat, x: Scalar<'p>) -> Scalar<'p> {
        let program = x.program();
        let int = |value: i64| program.int(DType::I64, value);
        let (mantissa, has_sign) = (i64::from(format.mantissa), format.sign != 0);
        // Without a sign there is no zero, and each code is a power of two.
        let (smallest, first) = if has_sign { (1 - format.bias, 0) } else { (-format.bias, 1) };
        let most = program.literal(DType::F64, 2f64.powi(130));
        let magnitude = x.call("abs").min(most);
        let exponent = bits_as(magnitude, DType::I64).call_with("shr", int(52)) - 1023;
        let exponent = exponent.max(i64::from(smallest)).min(130);
        let per_one = (int(1023 + mantissa) - exponent).call_with("shl", int(52));
        let steps = magnitude * bits_as(per_one, DType::F64);
        let steps = match rounding(&self.rounding) {
            Rounding::Nearest if !has_sign => (steps + 0.5).call("floor"),
            Rounding::Nearest => steps.call("round"),
            Rounding::Up => steps.call("ceil"),
            Rounding::Down => steps.call("floor"),
        };
        let binade = (exponent - i64::from(smallest)).call_with("shl", int(mantissa));
        let code = (binade + steps.cast(DType::I64) - first).max(0);
        let largest = i64::from(format.largest);
        let beyond = format.infinity.or(format.nan).filter(|_| !self.saturate);
        let mut code = match beyond {
            Some(beyond) => code.gt(largest).select(int(i64::from(beyond)), code),
            None => code.min(largest),
        };
        if has_sign {
            let sign = bits_as(x, DType::I64).lt(0).select(int(i64::from(format.sign)), int(0));
            let signed = code.call_with("bitor", sign);
            code = match format.has_negative_zero {
                true => signed,
                false => code.binary(BinaryOp::Eq, 0).select(code, signed),
            };
        }
        let nan = int(i64::from(format.nan.unwrap_or(format.sign)));
        let is_nan = x.binary(BinaryOp::Ne, x);
        match has_sign {
            true => is_nan.select(nan, code),
            false => x.ge(0).select(code, nan),
        }
    }
}

/// The bits of a scalar as another dtype of as many.
pub(super) fn bits_as(x: Scalar<'_>, dtype: DType) -> Scalar<'_> {
    x.program().scalar(|writer| {
        let ty = writer.with_cx(|cx| cx.scalar_type(dtype));
        writer.intrinsic_of("reinterpret", &[x.expr()], Some(ty))
    })
}
