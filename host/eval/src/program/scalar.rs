//! Arithmetic on registers.

use half::{bf16, f16};

use tenon_ir::{BinaryOp, DType};
use tenon_plugin_api::op::number::{int_pow, shorten, sigmoid};

use super::code::{BitOp, Math, Math2};

/// An integer brought back to its type.
#[inline]
pub(super) fn wrap(ty: DType, value: i64) -> i64 {
    match ty {
        DType::I8 => value as i8 as i64,
        DType::I16 => value as i16 as i64,
        DType::I32 => value as i32 as i64,
        DType::U8 => value as u8 as i64,
        DType::U16 => value as u16 as i64,
        DType::U32 => value as u32 as i64,
        DType::BOOL => (value != 0) as i64,
        _ => value,
    }
}

/// A float rounded to its type.
#[inline]
pub(super) fn round(ty: DType, value: f64) -> f64 {
    match ty {
        DType::F32 => value as f32 as f64,
        DType::F16 => shorten(value, f16::from_f32).to_f64(),
        DType::BF16 => shorten(value, bf16::from_f32).to_f64(),
        _ => value,
    }
}

/// `a op b` on integers of one type; `None` for a division by zero.
#[inline]
pub(super) fn int_op(op: BinaryOp, ty: DType, a: i64, b: i64) -> Option<i64> {
    let value = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Eq => return Some((a == b) as i64),
        BinaryOp::Ne => return Some((a != b) as i64),
        BinaryOp::And => return Some((a != 0 && b != 0) as i64),
        BinaryOp::Or => return Some((a != 0 || b != 0) as i64),
        _ if ty == DType::U64 => return unsigned_op(op, a as u64, b as u64),
        BinaryOp::Lt => return Some((a < b) as i64),
        BinaryOp::Le => return Some((a <= b) as i64),
        BinaryOp::Gt => return Some((a > b) as i64),
        BinaryOp::Ge => return Some((a >= b) as i64),
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        _ if b == 0 => return None,
        BinaryOp::Div => a.wrapping_div(b),
        BinaryOp::FloorDiv => {
            let quotient = a.wrapping_div(b);
            quotient - (a.wrapping_rem(b) != 0 && (a < 0) != (b < 0)) as i64
        }
        BinaryOp::FloorMod => {
            let rest = a.wrapping_rem(b);
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
    };
    Some(wrap(ty, value))
}

fn unsigned_op(op: BinaryOp, a: u64, b: u64) -> Option<i64> {
    Some(match op {
        BinaryOp::Lt => (a < b) as i64,
        BinaryOp::Le => (a <= b) as i64,
        BinaryOp::Gt => (a > b) as i64,
        BinaryOp::Ge => (a >= b) as i64,
        BinaryOp::Min => a.min(b) as i64,
        BinaryOp::Max => a.max(b) as i64,
        BinaryOp::FloorMod => a.checked_rem(b)? as i64,
        _ => a.checked_div(b)? as i64,
    })
}

/// `a op b` on floats, before rounding. Comparisons and logic are not of this form.
#[inline]
pub(super) fn float_op(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::FloorDiv => (a / b).floor(),
        BinaryOp::FloorMod => a - (a / b).floor() * b,
        BinaryOp::Min => {
            if a.is_nan() || a < b {
                a
            } else {
                b
            }
        }
        BinaryOp::Max => {
            if a.is_nan() || a > b {
                a
            } else {
                b
            }
        }
        _ => f64::NAN,
    }
}

#[inline]
pub(super) fn compare(op: BinaryOp, a: f64, b: f64) -> bool {
    match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        _ => false,
    }
}

/// A function of integers. A shift by more than the type has bits leaves none of them.
#[inline]
pub(super) fn bit_op(op: BitOp, ty: DType, a: i64, b: i64) -> i64 {
    let value = match op {
        BitOp::And => a & b,
        BitOp::Or => a | b,
        BitOp::Xor => a ^ b,
        BitOp::Not => !a,
        BitOp::Abs if ty == DType::U64 => a,
        BitOp::Abs => a.wrapping_abs(),
        BitOp::Shl => u32::try_from(b).ok().and_then(|by| a.checked_shl(by)).unwrap_or(0),
        BitOp::Shr if ty == DType::U64 => {
            u32::try_from(b).ok().and_then(|by| (a as u64).checked_shr(by)).unwrap_or(0) as i64
        }
        BitOp::Shr => a >> b.clamp(0, 63),
        BitOp::Pow => int_pow(a, b, ty.is_signed()),
    };
    wrap(ty, value)
}

/// A function of one float, before rounding.
pub(super) fn math(function: Math, x: f64) -> f64 {
    match function {
        Math::Exp => x.exp(),
        Math::Exp2 => x.exp2(),
        Math::Log => x.ln(),
        Math::Log2 => x.log2(),
        Math::Tanh => x.tanh(),
        Math::Sigmoid => sigmoid(x),
        Math::Sqrt => x.sqrt(),
        Math::Rsqrt => 1.0 / x.sqrt(),
        Math::Erf => libm::erf(x),
        Math::Sin => libm::sin(x),
        Math::Cos => libm::cos(x),
        Math::Tan => libm::tan(x),
        Math::Asin => libm::asin(x),
        Math::Acos => libm::acos(x),
        Math::Atan => libm::atan(x),
        Math::Sinh => libm::sinh(x),
        Math::Cosh => libm::cosh(x),
        Math::Asinh => libm::asinh(x),
        // libm has values for what is far below one.
        Math::Acosh if x < 1.0 => f64::NAN,
        Math::Acosh => libm::acosh(x),
        Math::Atanh => libm::atanh(x),
        Math::Floor => x.floor(),
        Math::Ceil => x.ceil(),
        Math::Round => x.round_ties_even(),
        Math::Trunc => x.trunc(),
        Math::Abs => x.abs(),
    }
}

/// A function of two floats, before rounding.
pub(super) fn math2(function: Math2, x: f64, y: f64) -> f64 {
    match function {
        Math2::Pow => x.powf(y),
        Math2::Copysign => x.copysign(y),
        Math2::ScaleB => libm::ldexp(x, y.floor() as i32),
    }
}

/// A float as an integer: towards zero, saturating, zero for what is not a number.
pub(super) fn float_to_int(ty: DType, value: f64) -> i64 {
    match ty {
        DType::I8 => value as i8 as i64,
        DType::I16 => value as i16 as i64,
        DType::I32 => value as i32 as i64,
        DType::U8 => value as u8 as i64,
        DType::U16 => value as u16 as i64,
        DType::U32 => value as u32 as i64,
        DType::U64 => value as u64 as i64,
        DType::BOOL => (value != 0.0) as i64,
        _ => value as i64,
    }
}

/// The bits of a float of its type.
pub(super) fn float_bits(ty: DType, value: f64) -> i64 {
    match ty {
        DType::F32 => (value as f32).to_bits() as i64,
        DType::F16 => shorten(value, f16::from_f32).to_bits() as i64,
        DType::BF16 => shorten(value, bf16::from_f32).to_bits() as i64,
        _ => value.to_bits() as i64,
    }
}

/// The float of its type that has these bits.
pub(super) fn float_of_bits(ty: DType, bits: i64) -> f64 {
    match ty {
        DType::F32 => f32::from_bits(bits as u32) as f64,
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f64(),
        _ => f64::from_bits(bits as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_round_down() {
        assert_eq!(int_op(BinaryOp::Add, DType::I8, 127, 1), Some(-128));
        assert_eq!(int_op(BinaryOp::FloorDiv, DType::I64, -7, 2), Some(-4));
        assert_eq!(int_op(BinaryOp::FloorMod, DType::I64, -7, 2), Some(1));
        assert_eq!(int_op(BinaryOp::FloorMod, DType::I64, 7, -2), Some(-1));
        assert_eq!(int_op(BinaryOp::Div, DType::I64, -7, 2), Some(-3));
        assert_eq!(int_op(BinaryOp::Div, DType::I64, 7, 0), None);
        assert_eq!(int_op(BinaryOp::Lt, DType::U64, -1, 1), Some(0));
        assert_eq!(bit_op(BitOp::Shr, DType::U32, 0xffff_ffff, 28), 15);
        assert_eq!(bit_op(BitOp::Shl, DType::I32, 1, 31), i32::MIN as i64);
    }
}
