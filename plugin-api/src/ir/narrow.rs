//! Floats of a byte or less: what their codes mean, and the code of the nearest one.
//!
//! ```text
//! f8e4m3      448, no infinity, not a number where all bits but the sign are set
//! f8e5m2      57344, infinity, as the wider ones
//! f8e4m3fnuz  240     f8e5m2fnuz  57344     no infinity, and not a number in the place of -0
//! f8e8m0      a power of two between 2^-127 and 2^127, no zero and no sign; 0xff is not a number
//! f4e2m1      6, neither infinity nor not a number
//! ```

use super::DType;
use super::number::power_of_two;

/// A float format of a byte or less.
#[derive(Clone, Copy, Debug)]
pub struct NarrowFloat {
    /// Bits of the mantissa.
    pub mantissa: u32,
    /// The exponent of a normal number is stored as so much more.
    pub bias: i32,
    /// The code of the largest finite number.
    pub largest: u8,
    /// The code that stands for infinity, where there is one.
    pub infinity: Option<u8>,
    /// The code of the usual NaN, where there is one.
    pub nan: Option<u8>,
    /// The bit of the sign; 0 where all numbers are positive.
    pub sign: u8,
    /// Whether there is a zero with a sign.
    pub has_negative_zero: bool,
}

/// Which neighbour a number between two becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// The nearest one, of two the even one; of two powers of two the larger one.
    Nearest,
    /// The larger one.
    Up,
    /// The smaller one.
    Down,
}

impl NarrowFloat {
    /// The format of a dtype, where it is one of these.
    pub fn of(dtype: DType) -> Option<Self> {
        let plain = Self {
            mantissa: 3,
            bias: 7,
            largest: 0x7e,
            infinity: None,
            nan: Some(0x7f),
            sign: 0x80,
            has_negative_zero: true,
        };
        let unsigned_zero =
            Self { nan: Some(0x80), largest: 0x7f, has_negative_zero: false, ..plain };
        Some(match dtype {
            DType::F8E4M3 => plain,
            DType::F8E5M2 => Self {
                mantissa: 2,
                bias: 15,
                largest: 0x7b,
                infinity: Some(0x7c),
                nan: Some(0x7e),
                ..plain
            },
            DType::F8E4M3FNUZ => Self { bias: 8, ..unsigned_zero },
            DType::F8E5M2FNUZ => Self { mantissa: 2, bias: 16, ..unsigned_zero },
            DType::F8E8M0 => Self {
                mantissa: 0,
                bias: 127,
                largest: 0xfe,
                nan: Some(0xff),
                sign: 0,
                has_negative_zero: false,
                ..plain
            },
            DType::F4E2M1 => Self { mantissa: 1, bias: 1, largest: 7, nan: None, sign: 8, ..plain },
            _ => return None,
        })
    }

    /// The number that a code stands for.
    pub fn decode(self, code: u8) -> f64 {
        let magnitude = code & !self.sign;
        let is_number =
            magnitude <= self.largest && (self.has_negative_zero || self.nan != Some(code));
        if !is_number {
            return match self.infinity {
                Some(infinity) if magnitude == infinity => self.signed(f64::INFINITY, code),
                _ => f64::NAN,
            };
        }
        let mantissa = f64::from(magnitude & ((1 << self.mantissa) - 1));
        let one = f64::from(1u8 << self.mantissa);
        let value = match i32::from(magnitude >> self.mantissa) {
            exponent if self.sign == 0 => power_of_two(exponent - self.bias),
            0 => mantissa / one * power_of_two(1 - self.bias),
            exponent => (1.0 + mantissa / one) * power_of_two(exponent - self.bias),
        };
        self.signed(value, code)
    }

    fn signed(self, value: f64, code: u8) -> f64 {
        if code & self.sign == 0 { value } else { -value }
    }

    /// The code of a number. One that is too large becomes the largest where `saturates`, infinity or no number otherwise; of
    /// what a format has not at all, NaN becomes -0 and a negative number not a number.
    pub fn encode(self, value: f64, saturates: bool, rounding: Rounding) -> u8 {
        let is_negative = value.is_sign_negative();
        let sign = if is_negative { self.sign } else { 0 };
        let Some(nan) = self.nan else {
            return if value.is_nan() {
                self.sign
            } else {
                self.magnitude(value.abs(), rounding) | sign
            };
        };
        let nan = if self.has_negative_zero { nan | sign } else { nan };
        if value.is_nan() || (self.sign == 0 && value < 0.0) {
            return nan;
        }
        let magnitude = value.abs();
        let code = match self.is_beyond(magnitude, rounding) {
            true if !saturates => return self.infinity.map_or(nan, |infinity| infinity | sign),
            true => self.largest,
            false => self.magnitude(magnitude, rounding),
        };
        if code == 0 && !self.has_negative_zero { 0 } else { code | sign }
    }

    /// Whether a number is rounded to what would follow the largest one.
    fn is_beyond(self, magnitude: f64, rounding: Rounding) -> bool {
        let (largest, step) = (self.decode(self.largest), self.step_at_end());
        match rounding {
            Rounding::Up => magnitude > largest,
            Rounding::Down => magnitude >= largest + step,
            Rounding::Nearest if !self.is_up_halfway(self.largest) => {
                magnitude > largest + step / 2.0
            }
            Rounding::Nearest => magnitude >= largest + step / 2.0,
        }
    }

    /// Whether what is half way between the number of a code and the next one becomes the next one: the even one of both, and of
    /// powers of two the larger.
    fn is_up_halfway(self, code: u8) -> bool {
        code % 2 == 1 || self.mantissa == 0
    }

    /// The distance from the largest number to what would follow it.
    fn step_at_end(self) -> f64 {
        let largest = self.decode(self.largest);
        match self.sign {
            0 => largest,
            _ => {
                let exponent = i32::from(self.largest >> self.mantissa) - self.bias;
                power_of_two(exponent - self.mantissa as i32)
            }
        }
    }

    /// The code of a number that is not negative, at most the largest one.
    fn magnitude(self, value: f64, rounding: Rounding) -> u8 {
        // Codes are in the order of the numbers.
        let (mut low, mut high) = (0, self.largest);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.decode(middle) <= value { low = middle } else { high = middle - 1 }
        }
        let below = self.decode(low);
        if low == self.largest || value <= below {
            return low;
        }
        let above = self.decode(low + 1);
        let is_up = match rounding {
            Rounding::Up => true,
            Rounding::Down => false,
            Rounding::Nearest => match (value - below).partial_cmp(&(above - value)) {
                Some(std::cmp::Ordering::Equal) => self.is_up_halfway(low),
                order => order == Some(std::cmp::Ordering::Greater),
            },
        };
        low + u8::from(is_up)
    }
}

/// The code of element `index` of a dtype of a byte or less, whose elements lie in a byte from the lowest bits on.
pub fn code_at(dtype: DType, bytes: &[u8], index: usize) -> u8 {
    let bits = dtype.bits() as usize;
    let per_byte = 8 / bits.max(1);
    let code = bytes[index / per_byte] >> (index % per_byte * bits);
    if bits < 8 { code & ((1 << bits) - 1) } else { code }
}

/// Codes of a dtype of a byte or less as the bytes of a tensor.
pub fn packed(dtype: DType, codes: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let bits = dtype.bits() as usize;
    let per_byte = 8 / bits.max(1);
    let mut bytes = Vec::new();
    for (index, code) in codes.into_iter().enumerate() {
        let shift = index % per_byte * bits;
        match bytes.last_mut().filter(|_| shift > 0) {
            Some(last) => *last |= code << shift,
            None => bytes.push(code),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(dtype: DType, value: f64, saturates: bool) -> u8 {
        NarrowFloat::of(dtype).unwrap().encode(value, saturates, Rounding::Nearest)
    }

    #[test]
    fn every_code_reads_back() {
        for dtype in DType::all() {
            let Some(format) = NarrowFloat::of(dtype) else { continue };
            for code in 0..=(0xffu8 >> (8 - dtype.bits())) {
                let value = format.decode(code);
                match value.is_nan() {
                    true => assert!(format.decode(encode(dtype, value, true)).is_nan(), "{dtype}"),
                    false => assert_eq!(encode(dtype, value, false), code, "{dtype}: {value}"),
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_the_largest_saturate_or_not() {
        assert_eq!(encode(DType::F8E4M3, 464.0, false), 0x7e);
        assert_eq!(encode(DType::F8E4M3, 465.0, false), 0x7f);
        assert_eq!(encode(DType::F8E4M3, -1e9, true), 0xfe);
        assert_eq!(encode(DType::F8E4M3, f64::INFINITY, true), 0x7e);
        assert_eq!(encode(DType::F8E5M2, 61440.0, false), 0x7c);
        assert_eq!(encode(DType::F8E5M2, 61439.0, false), 0x7b);
        assert_eq!(encode(DType::F8E4M3FNUZ, 248.0, false), 0x80);
        assert_eq!(encode(DType::F8E4M3FNUZ, -1e-9, false), 0);
        assert_eq!(encode(DType::F4E2M1, 1e6, true), 7);
        assert_eq!(encode(DType::F4E2M1, -2.5, true), 8 | 4);
        assert_eq!(encode(DType::F4E2M1, f64::NAN, true), 8);
    }

    #[test]
    fn powers_of_two_round_as_they_are_told() {
        let format = NarrowFloat::of(DType::F8E8M0).unwrap();
        let value = |x, rounding| format.decode(format.encode(x, true, rounding));
        assert_eq!(value(1.1, Rounding::Up), 2.0);
        assert_eq!(value(1.9, Rounding::Down), 1.0);
        assert_eq!(value(1.4, Rounding::Nearest), 1.0);
        assert_eq!(value(1.5, Rounding::Nearest), 2.0);
        assert_eq!(value(3.0, Rounding::Nearest), 4.0);
        assert_eq!(value(0.0, Rounding::Up), power_of_two(-127));
        assert!(value(-1.0, Rounding::Up).is_nan());
    }

    #[test]
    fn codes_are_packed_from_the_lowest_bits_on() {
        assert_eq!(packed(DType::U4, [1, 2, 3]), [0x21, 0x03]);
        assert_eq!(packed(DType::U2, [1, 2, 3, 0, 1]), [0x39, 0x01]);
        assert_eq!(code_at(DType::U2, &[0x39, 0x01], 2), 3);
        assert_eq!(code_at(DType::F8E4M3, &[0x39, 0x81], 1), 0x81);
    }
}
