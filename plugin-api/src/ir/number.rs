//! Single numbers as the bytes of an element, and back.

use super::narrow::{NarrowFloat, Rounding};
use crate::ir::DType;

/// Bits of exponent and of mantissa of a float dtype that has infinities.
fn float_bits(dtype: DType) -> Option<(u32, u32)> {
    match dtype {
        DType::F64 => Some((11, 52)),
        DType::F32 => Some((8, 23)),
        DType::F16 => Some((5, 10)),
        DType::BF16 => Some((8, 7)),
        _ => None,
    }
}

impl DType {
    /// The little-endian bytes of an element: the nearest value of a float dtype, the even one of two; of an
    /// integer dtype or bool the very number. `None` when the dtype has no such number or is below a byte.
    pub fn encode(self, value: f64) -> Option<Vec<u8>> {
        let bytes = self.bits() as usize / 8;
        if bytes == 0 {
            return None;
        }
        if let Some(format) = NarrowFloat::of(self) {
            return Some(vec![format.encode(value, false, Rounding::Nearest)]);
        }
        let code = match float_bits(self) {
            Some((11, _)) => value.to_bits(),
            Some((exponent, mantissa)) => encode_float(value, exponent, mantissa),
            None => {
                let is_exact = value.fract() == 0.0 && value.abs() < 9.0e15;
                let code = is_exact.then_some(value as i64 as u64)?;
                let bytes = code.to_le_bytes()[..bytes].to_vec();
                (self.decode(&bytes) == Some(value)).then_some(code)?
            }
        };
        Some(code.to_le_bytes()[..bytes].to_vec())
    }

    /// The number that an element is, rounded where an f64 does not hold it; `None` for other than the bytes
    /// of one element, and for dtypes that are no numbers here.
    pub fn decode(self, bytes: &[u8]) -> Option<f64> {
        if bytes.len() * 8 != self.bits() as usize {
            return None;
        }
        let code = bytes.iter().rev().fold(0u64, |code, &byte| code << 8 | byte as u64);
        if let Some(format) = NarrowFloat::of(self) {
            return Some(format.decode(code as u8));
        }
        let unused = 64 - self.bits();
        match float_bits(self) {
            Some((11, _)) => Some(f64::from_bits(code)),
            Some((exponent, mantissa)) => Some(decode_float(code, exponent, mantissa)),
            None if self.is_signed() => Some(((code << unused) as i64 >> unused) as f64),
            None if self.is_int() => Some(code as f64),
            None if self.is_bool() && code < 2 => Some(code as f64),
            None => None,
        }
    }
}

fn encode_float(value: f64, exponent_bits: u32, mantissa_bits: u32) -> u64 {
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let infinity = ((1u64 << exponent_bits) - 1) << mantissa_bits;
    let magnitude = value.abs();
    let code = if value.is_nan() {
        infinity | 1 << (mantissa_bits - 1)
    } else if magnitude.is_infinite() {
        infinity
    } else {
        // Codes are in the order of the numbers, so a mantissa that rounds up carries into the exponent.
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        let steps = magnitude / power_of_two(exponent - mantissa_bits as i32);
        let binade = (exponent - (1 - bias)) as u64;
        ((binade << mantissa_bits) + steps.round_ties_even() as u64).min(infinity)
    };
    code | (value.is_sign_negative() as u64) << (exponent_bits + mantissa_bits)
}

fn decode_float(code: u64, exponent_bits: u32, mantissa_bits: u32) -> f64 {
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let mantissa = (code & ((1 << mantissa_bits) - 1)) as f64 / power_of_two(mantissa_bits as i32);
    let exponent = (code >> mantissa_bits & ((1 << exponent_bits) - 1)) as i32;
    let magnitude = match exponent {
        0 => mantissa * power_of_two(1 - bias),
        _ if exponent == (1 << exponent_bits) - 1 && mantissa == 0.0 => f64::INFINITY,
        _ if exponent == (1 << exponent_bits) - 1 => f64::NAN,
        _ => (1.0 + mantissa) * power_of_two(exponent - bias),
    };
    match code >> (exponent_bits + mantissa_bits) & 1 {
        0 => magnitude,
        _ => -magnitude,
    }
}

/// Two to a power that a normal f64 has. `powi` may round as it likes.
pub(super) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::power_of_two;
    use crate::ir::DType;

    #[test]
    fn floats_are_those_of_rust() {
        let values = [0.0, -0.0, 1.0, -1.5, 0.1, 1e-40, 1e-45, 3.4e38, 3.5e38, f64::INFINITY];
        for value in values {
            assert_eq!(DType::F32.encode(value), Some((value as f32).to_le_bytes().to_vec()));
            let code = (value as f32).to_le_bytes();
            assert_eq!(DType::F32.decode(&code), Some(value as f32 as f64));
        }
        assert!(DType::F32.decode(&f32::NAN.to_le_bytes()).is_some_and(f64::is_nan));
    }

    #[test]
    fn half_floats_round_to_the_even_neighbour() {
        let code =
            |dtype: DType, value| dtype.encode(value).map(|b| u16::from_le_bytes([b[0], b[1]]));
        // From IEEE 754-2019: 65504 is the largest binary16, 65520 the first that is infinite.
        assert_eq!(code(DType::F16, 1.0), Some(0x3c00));
        assert_eq!(code(DType::F16, 65504.0), Some(0x7bff));
        assert_eq!(code(DType::F16, 65519.9), Some(0x7bff));
        assert_eq!(code(DType::F16, 65520.0), Some(0x7c00));
        assert_eq!(code(DType::F16, power_of_two(-24)), Some(0x0001));
        assert_eq!(code(DType::F16, power_of_two(-25)), Some(0x0000));
        assert_eq!(code(DType::F16, 1.0 + power_of_two(-11)), Some(0x3c00));
        assert_eq!(code(DType::F16, 1.0 + 3.0 * power_of_two(-11)), Some(0x3c02));
        assert_eq!(code(DType::BF16, -2.0), Some(0xc000));
        assert_eq!(DType::F16.decode(&[0xff, 0x7b]), Some(65504.0));
        assert_eq!(DType::F16.decode(&[0x01, 0x00]), Some(power_of_two(-24)));
        assert_eq!(DType::BF16.decode(&[0x80, 0x7f]), Some(f64::INFINITY));
    }

    #[test]
    fn integers_are_exact_or_nothing() {
        assert_eq!(DType::I8.encode(-1.0), Some(vec![0xff]));
        assert_eq!(DType::I8.encode(128.0), None);
        assert_eq!(DType::U8.encode(-1.0), None);
        assert_eq!(DType::I32.encode(0.5), None);
        assert_eq!(DType::I64.encode(f64::NAN), None);
        assert_eq!(DType::I16.decode(&[0xfe, 0xff]), Some(-2.0));
        assert_eq!(DType::BOOL.encode(1.0), Some(vec![1]));
        assert_eq!(DType::BOOL.encode(2.0), None);
        assert_eq!(DType::I16.decode(&[0]), None);
    }
}
