//! Elements of stored types as values, one at a time.

use tenon_plugin_api::ir::Bytes;
use tenon_plugin_api::ir::narrow::{NarrowFloat, Rounding, code_at, packed};
use tenon_plugin_api::op::number::{Number, unsupported};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

/// The element type that elements of a stored type are computed with.
pub(crate) fn decoded_dtype(dtype: DType) -> DType {
    match (dtype.is_float(), dtype.is_signed()) {
        (true, _) => DType::F32,
        (false, true) => DType::I8,
        (false, false) => DType::U8,
    }
}

/// The rounding that an attribute names.
pub(crate) fn rounding(name: &str) -> Rounding {
    match name {
        "up" => Rounding::Up,
        "down" => Rounding::Down,
        _ => Rounding::Nearest,
    }
}

/// The elements of a stored type whose bytes these are.
pub(crate) fn decoded(dtype: DType, bytes: &[u8], shape: &[usize]) -> Result<Tensor> {
    let count = shape.iter().product();
    if dtype.bytes(count as u64) != Some(bytes.len() as u64) {
        return Err(OpError::Value(format!(
            "{} bytes for {count} elements of {dtype}",
            bytes.len()
        )));
    }
    let codes = (0..count).map(|index| code_at(dtype, bytes, index));
    let unused = 8 - dtype.bits();
    Ok(match NarrowFloat::of(dtype) {
        Some(format) => {
            Tensor::from_vec(shape.to_vec(), codes.map(|code| format.decode(code) as f32).collect())
        }
        None if dtype.is_signed() => Tensor::from_vec(
            shape.to_vec(),
            codes.map(|code| ((code << unused) as i8) >> unused).collect(),
        ),
        None => Tensor::from_vec(shape.to_vec(), codes.collect::<Vec<u8>>()),
    })
}

/// A tensor of a type that is computed with as the bytes of one of a stored type.
pub(crate) fn encoded(
    x: &Tensor,
    dtype: DType,
    saturates: bool,
    rounding: Rounding,
) -> Result<Vec<u8>> {
    if x.dtype().is_storage() {
        return Err(unsupported(x.dtype()));
    }
    let is_float = x.dtype().is_float();
    let mask = u8::MAX >> (8 - dtype.bits());
    with_number!(x.dtype(), T => {
        let elements = x.elements::<T>();
        let code = |&element: &T| match NarrowFloat::of(dtype) {
            Some(format) => format.encode(element.to_f64(), saturates, rounding),
            None if is_float => {
                let (low, high) = dtype.int_bounds();
                (element.to_f64() as i64).clamp(low, high) as u8 & mask
            }
            None => element.to_i64() as u8 & mask,
        };
        Ok(packed(dtype, elements.iter().map(code)))
    })
}

/// A tensor of a stored type with these elements.
pub(crate) fn stored(
    x: &Tensor,
    dtype: DType,
    saturates: bool,
    rounding: Rounding,
) -> Result<Tensor> {
    let bytes = encoded(x, dtype, saturates, rounding)?;
    Tensor::new(dtype, x.shape().to_vec(), Bytes::new(bytes)).ok_or_else(|| unsupported(dtype))
}
