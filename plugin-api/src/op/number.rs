//! Arithmetic on elements: what each of them means, one at a time.

pub use half::{bf16, f16};

use super::{Element, OpError};
use crate::ir::DType;

/// That elements of a dtype cannot be evaluated.
pub fn unsupported(dtype: DType) -> OpError {
    OpError::Unsupported(format!("elements of {dtype} cannot be evaluated"))
}

/// Runs a body with the element type of a number: `with_number!(dtype, T => body)`. The body is a `Result` of an
/// [`OpError`](crate::op::OpError), which is what a dtype that has no such type gives. A bool is a `u8`.
#[macro_export]
macro_rules! with_number {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::ir::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::ir::DType::F64 => {
                type $t = f64;
                $body
            }
            $crate::ir::DType::F16 => {
                type $t = $crate::op::number::f16;
                $body
            }
            $crate::ir::DType::BF16 => {
                type $t = $crate::op::number::bf16;
                $body
            }
            $crate::ir::DType::I8 => {
                type $t = i8;
                $body
            }
            $crate::ir::DType::I16 => {
                type $t = i16;
                $body
            }
            $crate::ir::DType::I32 => {
                type $t = i32;
                $body
            }
            $crate::ir::DType::I64 => {
                type $t = i64;
                $body
            }
            $crate::ir::DType::U8 | $crate::ir::DType::BOOL => {
                type $t = u8;
                $body
            }
            $crate::ir::DType::U16 => {
                type $t = u16;
                $body
            }
            $crate::ir::DType::U32 => {
                type $t = u32;
                $body
            }
            $crate::ir::DType::U64 => {
                type $t = u64;
                $body
            }
            other => Err($crate::op::number::unsupported(other)),
        }
    };
}

/// As [`with_number!`](crate::with_number), for floats.
#[macro_export]
macro_rules! with_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::ir::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::ir::DType::F64 => {
                type $t = f64;
                $body
            }
            $crate::ir::DType::F16 => {
                type $t = $crate::op::number::f16;
                $body
            }
            $crate::ir::DType::BF16 => {
                type $t = $crate::op::number::bf16;
                $body
            }
            other => Err($crate::op::number::unsupported(other)),
        }
    };
}

/// As [`with_number!`](crate::with_number), with an unsigned integer of the size of an element, for what only moves
/// elements.
#[macro_export]
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
            _ => Err($crate::op::number::unsupported($dtype)),
        }
    };
}

/// A number: floats narrower than f32 are computed in f32, integers wrap around.
pub trait Number: Element + PartialOrd + Default {
    /// Whether it is a float.
    const IS_FLOAT: bool;
    /// What sums are kept in: f64 for floats, i64 for integers.
    type Sum: Sum;
    /// As a sum of one number.
    fn widen(self) -> Self::Sum;
    /// The nearest value to a sum; modulo the size of the type for integers.
    fn narrow(sum: Self::Sum) -> Self;
    /// The nearest f64.
    fn to_f64(self) -> f64;
    /// The nearest value; towards zero for integers, which saturate.
    fn from_f64(value: f64) -> Self;
    /// The value, towards zero; the bits of a u64.
    fn to_i64(self) -> i64;
    /// The value modulo the size of the type.
    fn from_i64(value: i64) -> Self;
    /// The sum.
    fn add(self, other: Self) -> Self;
    /// The difference.
    fn sub(self, other: Self) -> Self;
    /// The product.
    fn mul(self, other: Self) -> Self;
    /// Division; integers are truncated, and divided by zero give zero.
    fn div(self, other: Self) -> Self;
    /// The power; of integers that of [`int_pow`].
    fn pow(self, other: Self) -> Self;
    /// The negative.
    fn neg(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;

    /// Whether it is not a number.
    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }

    /// The larger one; what is not a number wins.
    fn larger(self, other: Self) -> Self {
        if self.is_nan() || self > other { self } else { other }
    }

    /// The smaller one; what is not a number wins.
    fn smaller(self, other: Self) -> Self {
        if self.is_nan() || self < other { self } else { other }
    }
}

/// What sums and products of many elements are kept in.
pub trait Sum: Copy + Send + Sync + Default {
    /// One.
    const ONE: Self;
    /// The sum.
    fn add(self, other: Self) -> Self;
    /// The product.
    fn mul(self, other: Self) -> Self;
}

impl Sum for f64 {
    const ONE: Self = 1.0;
    #[inline]
    fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline]
    fn mul(self, other: Self) -> Self {
        self * other
    }
}

impl Sum for i64 {
    const ONE: Self = 1;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline]
    fn mul(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
}

macro_rules! ints {
    ($($t:ty)*) => {$(
        impl Number for $t {
            const IS_FLOAT: bool = false;
            type Sum = i64;
            #[inline] fn widen(self) -> i64 { self as i64 }
            #[inline] fn narrow(sum: i64) -> Self { sum as Self }
            #[inline] fn to_f64(self) -> f64 { self as f64 }
            #[inline] fn from_f64(value: f64) -> Self { value as Self }
            #[inline] fn to_i64(self) -> i64 { self as i64 }
            #[inline] fn from_i64(value: i64) -> Self { value as Self }
            #[inline] fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline] fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline] fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline] fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline] fn pow(self, other: Self) -> Self {
                int_pow(self as i64, other as i64, <$t>::MIN != 0) as Self
            }
            #[inline] fn neg(self) -> Self { self.wrapping_neg() }
            #[allow(unused_comparisons, reason = "unsigned types share the code")]
            #[inline] fn abs(self) -> Self { if self < 0 { self.wrapping_neg() } else { self } }
        }
    )*};
}

ints!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($t:ty, $wide:ty, $to:expr, $from:expr, $to64:expr, $from64:expr;)*) => {$(
        impl Number for $t {
            const IS_FLOAT: bool = true;
            type Sum = f64;
            #[inline] fn widen(self) -> f64 { $to64(self) }
            #[inline] fn narrow(sum: f64) -> Self { $from64(sum) }
            #[inline] fn to_f64(self) -> f64 { $to64(self) }
            #[inline] fn from_f64(value: f64) -> Self { $from64(value) }
            #[inline] fn to_i64(self) -> i64 { $to(self) as i64 }
            #[inline] fn from_i64(value: i64) -> Self { $from64(value as f64) }
            #[inline] fn add(self, other: Self) -> Self { $from($to(self) + $to(other)) }
            #[inline] fn sub(self, other: Self) -> Self { $from($to(self) - $to(other)) }
            #[inline] fn mul(self, other: Self) -> Self { $from($to(self) * $to(other)) }
            #[inline] fn div(self, other: Self) -> Self { $from($to(self) / $to(other)) }
            #[inline] fn pow(self, other: Self) -> Self { $from64($to64(self).powf($to64(other))) }
            #[inline] fn neg(self) -> Self { -self }
            #[inline] fn abs(self) -> Self { $from($to(self).abs()) }
        }
    )*};
}

floats! {
    f64, f64, |x| x, |x| x, |x| x, |x| x;
    f32, f32, |x| x, |x| x, |x: f32| x as f64, |x: f64| x as f32;
    f16, f32, f16::to_f32, f16::from_f32, f16::to_f64, |x| shorten(x, f16::from_f32);
    bf16, f32, bf16::to_f32, bf16::from_f32, bf16::to_f64, |x| shorten(x, bf16::from_f32);
}

/// An integer power, modulo 2^64. A negative exponent gives the truncated quotient of 1 and the power, and of
/// zero, which has none, 0; the bits of an unsigned exponent are never negative.
pub fn int_pow(base: i64, exponent: i64, is_signed: bool) -> i64 {
    if is_signed && exponent < 0 {
        return match base {
            1 => 1,
            -1 => 1 - 2 * (exponent & 1),
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1i64, base, exponent as u64);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}

/// `1 / (1 + exp(-x))`, by an exponential that does not overflow.
pub fn sigmoid(x: f64) -> f64 {
    let falling = (-x.abs()).exp();
    if x < 0.0 { falling / (1.0 + falling) } else { 1.0 / (1.0 + falling) }
}

/// The nearest 16-bit float, rounded once. Over f32 rounded to odd: what lies between two neighbours of the short
/// format, or in their middle, still does.
pub fn shorten<T>(value: f64, to_short: fn(f32) -> T) -> T {
    let near = value as f32;
    let bits = near.to_bits() - (near.abs() as f64 > value.abs()) as u32;
    let is_inexact = near as f64 != value && !value.is_nan();
    to_short(f32::from_bits(bits | is_inexact as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_floats_are_rounded_once() {
        // A little above the middle of two neighbours, by less than an f32 holds.
        assert_eq!(
            <f16 as Number>::from_f64(1.0 + 2f64.powi(-11) + 2f64.powi(-40)).to_f64(),
            1.0009765625
        );
        assert_eq!(
            <bf16 as Number>::from_f64(-1.0 - 2f64.powi(-8) - 2f64.powi(-50)).to_f64(),
            -1.0078125
        );
        assert_eq!(<f16 as Number>::from_f64(1.0 + 2f64.powi(-11)).to_f64(), 1.0);
        assert_eq!(<f16 as Number>::from_f64(2f64.powi(-25)).to_f64(), 0.0);
        assert_eq!(
            <f16 as Number>::from_f64(2f64.powi(-25) + 2f64.powi(-60)).to_f64(),
            2f64.powi(-24)
        );
        assert_eq!(<f16 as Number>::from_f64(f64::MAX), f16::INFINITY);
        assert_eq!(<f16 as Number>::from_f64(65519.99999999), f16::MAX);
        assert!(<bf16 as Number>::from_f64(f64::NAN).is_nan());
        assert_eq!(<bf16 as Number>::from_f64(5e-324).to_f64(), 0.0);
    }

    #[test]
    fn integers_have_powers() {
        assert_eq!(Number::pow(3i32, 4), 81);
        assert_eq!(Number::pow(-1i64, -3), -1);
        assert_eq!(Number::pow(2i64, -1), 0);
        assert_eq!(Number::pow(2i64, i64::MAX), 0);
        assert_eq!(Number::pow(7i8, 2), 49);
        assert_eq!(Number::pow(0i32, -1), 0);
        assert_eq!(Number::pow(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(Number::pow(3u8, 255), 171);
    }
}
