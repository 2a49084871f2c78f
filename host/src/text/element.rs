//! Elements of constants as text, exact for every dtype.
//!
//! Floats are written with the fewest digits that read back as the same bits; a NaN other than the
//! standard one is written with its bits, `nan(0x7fc1)`.

use std::fmt::Write;

use half::{bf16, f16};

use crate::ir::DType;

/// The standard NaN of a float dtype, as bits.
fn standard_nan(dtype: DType) -> Option<u64> {
    match dtype {
        DType::F64 => Some(f64::NAN.to_bits()),
        DType::F32 => Some(f32::NAN.to_bits() as u64),
        DType::F16 => Some(f16::NAN.to_bits() as u64),
        DType::BF16 => Some(bf16::NAN.to_bits() as u64),
        DType::F8E4M3 => Some(0x7f),
        DType::F8E5M2 => Some(0x7e),
        _ => None,
    }
}

/// Whether this build can write elements of `dtype`.
pub(super) fn is_known(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_int() || dtype.is_bool()
}

/// The bits of element `index`.
fn bits(dtype: DType, bytes: &[u8], index: usize) -> u64 {
    let size = dtype.bits() as usize;
    if size < 8 {
        let per_byte = 8 / size;
        let shift = index % per_byte * size;
        return (bytes[index / per_byte] >> shift) as u64 & ((1 << size) - 1);
    }
    let size = size / 8;
    let mut wide = [0; 8];
    wide[..size].copy_from_slice(&bytes[index * size..][..size]);
    u64::from_le_bytes(wide)
}

/// Writes element `index` of a constant of a known dtype.
pub(super) fn write(out: &mut String, dtype: DType, bytes: &[u8], index: usize) {
    let bits = bits(dtype, bytes, index);
    if dtype.is_float() {
        return write_float(out, dtype, bits);
    }
    let written = match (dtype.is_bool(), bits) {
        (true, 0) => out.write_str("false"),
        (true, 1) => out.write_str("true"),
        _ if dtype.is_signed() => {
            let unused = 64 - dtype.bits();
            write!(out, "{}", ((bits << unused) as i64) >> unused)
        }
        _ => write!(out, "{bits}"),
    };
    written.expect("a string takes all");
}

fn write_float(out: &mut String, dtype: DType, bits: u64) {
    let start = out.len();
    let value = to_f64(dtype, bits);
    let written = if value.is_nan() {
        match standard_nan(dtype) == Some(bits) {
            true => out.write_str("nan"),
            false => write!(out, "nan({bits:#x})"),
        }
    } else if dtype == DType::F64 {
        write!(out, "{value:?}")
    } else {
        // Every narrower float is an f32 as well, and one with fewer digits to tell it from its
        // neighbours.
        write!(out, "{:?}", value as f32)
    };
    written.expect("a string takes all");
    if out[start..].ends_with(".0") {
        out.truncate(out.len() - 2);
    }
}

fn to_f64(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(bits),
        DType::F32 => f32::from_bits(bits as u32) as f64,
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f64(),
        DType::F8E5M2 => f16::from_bits((bits as u16) << 8).to_f64(),
        DType::F8E4M3 => e4m3_to_f64(bits as u8),
        _ => f64::NAN,
    }
}

/// Sign, four bits of exponent with bias 7, three of mantissa; no infinity, one NaN of each sign.
fn e4m3_to_f64(bits: u8) -> f64 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = ((bits >> 3 & 15) as i32, (bits & 7) as f64);
    match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => sign * mantissa * (-9f64).exp2(),
        _ => sign * (8.0 + mantissa) * f64::from(exponent - 10).exp2(),
    }
}

/// An element as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Element<'s> {
    Bool(bool),
    /// Digits, with a sign.
    Number(bool, &'s str),
    Infinity(bool),
    Nan,
    NanBits(u64),
}

/// Collects the elements of one constant.
pub(super) struct Elements {
    dtype: DType,
    bytes: Vec<u8>,
    count: usize,
}

impl Elements {
    pub(super) fn new(dtype: DType) -> Self {
        Self { dtype, bytes: Vec::new(), count: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds an element; `None` when the dtype has no such value.
    pub(super) fn push(&mut self, element: Element<'_>) -> Option<()> {
        let bits = to_bits(self.dtype, element)?;
        self.push_bits(bits);
        Some(())
    }

    /// Adds the last element again, until there are `count`.
    pub(super) fn fill(&mut self, count: usize) {
        let Some(last) = self.count.checked_sub(1) else { return };
        let bits = bits(self.dtype, &self.bytes, last);
        while self.count < count {
            self.push_bits(bits);
        }
    }

    fn push_bits(&mut self, bits: u64) {
        let size = self.dtype.bits() as usize;
        if size < 8 {
            let per_byte = 8 / size;
            let shift = self.count % per_byte * size;
            match self.bytes.last_mut().filter(|_| shift > 0) {
                Some(last) => *last |= (bits as u8) << shift,
                None => self.bytes.push(bits as u8),
            }
        } else {
            self.bytes.extend_from_slice(&bits.to_le_bytes()[..size / 8]);
        }
        self.count += 1;
    }
}

fn to_bits(dtype: DType, element: Element<'_>) -> Option<u64> {
    let width = dtype.bits();
    if dtype.is_float() {
        let value = match element {
            Element::Bool(_) => return None,
            Element::Nan => return standard_nan(dtype),
            Element::NanBits(bits) => {
                let fits = width == 64 || bits >> width == 0;
                return Some(bits).filter(|&bits| fits && to_f64(dtype, bits).is_nan());
            }
            Element::Infinity(is_negative) if is_negative => f64::NEG_INFINITY,
            Element::Infinity(_) => f64::INFINITY,
            Element::Number(is_negative, digits) => {
                let sign = if is_negative { -1.0 } else { 1.0 };
                if dtype == DType::F32 {
                    // Not through f64, which would round twice.
                    let value: f32 = digits.parse().ok()?;
                    return Some((value * sign as f32).to_bits() as u64);
                }
                digits.parse::<f64>().ok()? * sign
            }
        };
        return float_bits(dtype, value);
    }
    let value = match element {
        Element::Bool(value) if dtype.is_bool() => value as i128,
        Element::Number(is_negative, digits) => {
            let value: i128 = digits.parse().ok()?;
            if is_negative { -value } else { value }
        }
        _ => return None,
    };
    let range = match dtype.is_signed() {
        true => -(1i128 << (width - 1))..1 << (width - 1),
        false => 0..1 << width,
    };
    let mask = u64::MAX >> (64 - width);
    range.contains(&value).then_some(value as u64 & mask)
}

fn float_bits(dtype: DType, value: f64) -> Option<u64> {
    match dtype {
        DType::F64 => Some(value.to_bits()),
        DType::F32 => Some((value as f32).to_bits() as u64),
        DType::F16 => Some(f16::from_f64(value).to_bits() as u64),
        DType::BF16 => Some(bf16::from_f64(value).to_bits() as u64),
        DType::F8E5M2 => Some(nearest(value, 0x7c, |bits| to_f64(dtype, bits))),
        DType::F8E4M3 if value.abs() <= 464.0 => {
            Some(nearest(value, 0x7e, |bits| to_f64(dtype, bits)))
        }
        _ => None,
    }
}

/// The bits of the nearest 8-bit float, ties to even, whose positive values are `0 ..= largest`.
fn nearest(value: f64, largest: u64, to_f64: impl Fn(u64) -> f64) -> u64 {
    let (mut low, mut high) = (0, largest);
    let magnitude = value.abs();
    while low < high {
        let middle = (low + high).div_ceil(2);
        if to_f64(middle) <= magnitude { low = middle } else { high = middle - 1 }
    }
    let (below, above) = (to_f64(low), to_f64((low + 1).min(largest)));
    // The largest finite number of a dtype with infinity is followed by what would be next.
    let above = if above.is_infinite() { 2.0 * below - to_f64(low - 1) } else { above };
    let is_up = match (magnitude - below).partial_cmp(&(above - magnitude)) {
        Some(std::cmp::Ordering::Greater) => low < largest,
        Some(std::cmp::Ordering::Equal) => low % 2 == 1 && low < largest,
        _ => false,
    };
    (low + is_up as u64) | (value.is_sign_negative() as u64) << 7
}

#[cfg(test)]
mod tests;
