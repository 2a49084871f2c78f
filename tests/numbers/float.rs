//! Floats of four formats as bits, and the distance of two.

/// A format: the bits of an element, those of its exponent and of its mantissa.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    mantissa: u32,
    /// The exponent of the smallest number above zero.
    least: i32,
}

pub(crate) const F16: Format = Format { name: "f16", bytes: 2, mantissa: 10, least: -24 };
pub(crate) const BF16: Format = Format { name: "bf16", bytes: 2, mantissa: 7, least: -133 };
pub(crate) const F32: Format = Format { name: "f32", bytes: 4, mantissa: 23, least: -149 };
pub(crate) const F64: Format = Format { name: "f64", bytes: 8, mantissa: 52, least: -1074 };
pub(crate) const ALL: [Format; 4] = [F16, BF16, F32, F64];

impl Format {
    fn sign(self) -> u64 {
        1 << (8 * self.bytes - 1)
    }

    /// The bits of infinity.
    pub(crate) fn infinity(self) -> u64 {
        self.sign() - (1 << self.mantissa)
    }

    pub(crate) fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign() > self.infinity()
    }

    /// The number that has these bits.
    pub(crate) fn value(self, bits: u64) -> f64 {
        if self == F64 {
            return f64::from_bits(bits);
        }
        let size = bits & !self.sign();
        let sign = if bits == size { 1.0 } else { -1.0 };
        if size >= self.infinity() {
            return if size == self.infinity() { sign * f64::INFINITY } else { f64::NAN };
        }
        let exponent = (size >> self.mantissa) as i32;
        let fraction = size & ((1 << self.mantissa) - 1);
        let whole = if exponent > 0 { fraction | 1 << self.mantissa } else { fraction };
        // In two steps, since the power alone may be below the range.
        sign * whole as f64
            * 2f64.powi(exponent.max(1) - 1)
            * 2f64.powi(self.least / 2)
            * 2f64.powi(self.least - self.least / 2)
    }

    /// The bits of the nearest number, of two the even one.
    pub(crate) fn nearest(self, value: f64) -> u64 {
        if value.is_nan() {
            return self.infinity() + 1;
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        let size = value.abs();
        // What is one above the greatest number would be, if there were more exponents.
        let number = |bits: u64| match bits == self.infinity() {
            true => 2.0 * self.value(self.infinity() - (1 << self.mantissa)),
            false => self.value(bits),
        };
        let (mut low, mut high) = (0, self.infinity());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if number(middle) <= size { low = middle } else { high = middle }
        }
        let (below, above) = (size - number(low), number(high) - size);
        let is_low = below < above || below == above && low % 2 == 0;
        sign | if is_low { low } else { high }
    }

    /// How many numbers lie between two, and whether only one of them is a number, or a zero has the other sign.
    pub(crate) fn distance(self, found: u64, expected: u64) -> u64 {
        match (self.is_nan(found), self.is_nan(expected)) {
            (true, true) => return 0,
            (false, false) => {}
            _ => return u64::MAX,
        }
        let place = |bits: u64| match bits & self.sign() {
            0 => i128::from(bits),
            sign => -1 - i128::from(bits - sign),
        };
        (place(found) - place(expected)).unsigned_abs() as u64
    }

    /// The elements of a tensor as bits.
    pub(crate) fn bits(self, bytes: &[u8]) -> Vec<u64> {
        bytes
            .chunks(self.bytes)
            .map(|chunk| chunk.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
            .collect()
    }
}
