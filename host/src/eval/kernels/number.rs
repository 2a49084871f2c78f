//! Arithmetic on elements.

use half::{bf16, f16};

use crate::eval::Element;

/// A number: floats narrower than f32 are computed in f32, integers wrap around.
pub(super) trait Number: Element + PartialOrd + Default {
    /// Whether it is a float.
    const IS_FLOAT: bool;
    /// What sums are kept in: f64 for floats, i64 for integers.
    type Sum: Sum;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
    fn to_f64(self) -> f64;
    /// The nearest value; towards zero for integers, which saturate.
    fn from_f64(value: f64) -> Self;
    fn to_i64(self) -> i64;
    /// The value modulo the size of the type.
    fn from_i64(value: i64) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Division; integers are truncated, and divided by zero give zero.
    fn div(self, other: Self) -> Self;
    fn pow(self, other: Self) -> Self;
    fn neg(self) -> Self;
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
pub(super) trait Sum: Copy + Send + Sync + Default {
    const ONE: Self;
    fn add(self, other: Self) -> Self;
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
            #[inline] fn pow(self, other: Self) -> Self { int_pow(self as i64, other as i64) as Self }
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
    f16, f32, f16::to_f32, f16::from_f32, f16::to_f64, f16::from_f64;
    bf16, f32, bf16::to_f32, bf16::from_f32, bf16::to_f64, bf16::from_f64;
}

/// An integer power; a negative exponent gives what truncation leaves.
fn int_pow(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (_, 0..) => {
            let (mut result, mut square, mut rest) = (1i64, base, exponent);
            while rest > 0 {
                if rest & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                rest >>= 1;
            }
            result
        }
        (1, _) => 1,
        (-1, _) => 1 - 2 * (exponent & 1),
        _ => 0,
    }
}

/// The Gauss error function, by a series of positive terms, to about 1e-15.
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let square = 2.0 * x * x;
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= square / odd;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_has_known_values() {
        for (x, expected) in [(0.0, 0.0), (0.5, 0.5204998778130465), (1.0, 0.8427007929497149)] {
            assert!((erf(x) - expected).abs() < 1e-15, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert!((erf(3.5) - 0.9999992569016276).abs() < 1e-14);
        assert_eq!(erf(f64::INFINITY), 1.0);
        assert!(erf(f64::NAN).is_nan());
    }

    #[test]
    fn integers_have_powers() {
        assert_eq!(Number::pow(3i32, 4), 81);
        assert_eq!(Number::pow(-1i64, -3), -1);
        assert_eq!(Number::pow(2i64, -1), 0);
        assert_eq!(Number::pow(2i64, i64::MAX), 0);
    }
}
