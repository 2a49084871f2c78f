//! Elements of constants as text, exact for every dtype.
//!
//! Floats are written with the fewest digits that read back as the same bits; a NaN other than the
//! standard one is written with its bits, `nan(0x7fc1)`.

use std::fmt::Write;

use half::{bf16, f16};

use crate::DType;
use crate::narrow::{NarrowFloat, Rounding};

/// The standard NaN of a float dtype, as bits.
fn standard_nan(dtype: DType) -> Option<u64> {
    match dtype {
        DType::F64 => Some(f64::NAN.to_bits()),
        DType::F32 => Some(f32::NAN.to_bits() as u64),
        DType::F16 => Some(f16::NAN.to_bits() as u64),
        DType::BF16 => Some(bf16::NAN.to_bits() as u64),
        _ => NarrowFloat::of(dtype)?.nan.map(u64::from),
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
        _ => NarrowFloat::of(dtype).map_or(f64::NAN, |format| format.decode(bits as u8)),
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
        _ => narrow_bits(dtype, value),
    }
}

/// The bits of the nearest float of a byte or less; `None` where it has none for such a number.
fn narrow_bits(dtype: DType, value: f64) -> Option<u64> {
    let format = NarrowFloat::of(dtype)?;
    let code = format.encode(value, false, Rounding::Nearest);
    let has_one = !format.decode(code).is_nan() && (value.is_finite() || format.infinity.is_some());
    has_one.then_some(u64::from(code))
}

#[cfg(test)]
mod tests;
