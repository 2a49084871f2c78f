//! Conversion to another element type.

use tenon_plugin_api::op::number::Number;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

use super::elements::filled;
use crate::storage::codes::decoded;

/// A tensor in another element type, which is not one that is stored alone.
pub(crate) fn convert(tensor: &Tensor, to: DType) -> Result<Tensor> {
    let from = tensor.dtype();
    if from == to {
        return Ok(tensor.clone());
    }
    if from.is_storage() {
        return convert(&decoded(from, tensor.bytes(), tensor.shape())?, to);
    }
    // Over f64 from floats, over i64 from integers, so that types are not taken in pairs.
    let is_float = from.is_float() || (from == DType::U64 && to.is_float());
    let (mut floats, mut ints): (Option<Reader<'_, f64>>, Option<Reader<'_, i64>>) = (None, None);
    with_number!(from, T => {
        let elements = tensor.elements::<T>();
        match is_float {
            true => floats = Some(Box::new(move |first, to| read(&elements[first..], to, T::to_f64))),
            false => ints = Some(Box::new(move |first, to| read(&elements[first..], to, T::to_i64))),
        }
        Ok(())
    })?;
    with_number!(to, U => Ok(filled(to, tensor.shape(), &|first, out: &mut [U]| {
        let one = U::from_i64(1);
        for (number, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = first + number * BLOCK;
            match (&floats, &ints) {
                (Some(read), _) => {
                    let mut block = [0.0; BLOCK];
                    read(first, &mut block[..out.len()]);
                    for (out, x) in out.iter_mut().zip(block) {
                        *out = match to.is_bool() {
                            true => if x != 0.0 { one } else { U::default() },
                            false => U::from_f64(x),
                        };
                    }
                }
                (None, Some(read)) => {
                    let mut block = [0; BLOCK];
                    read(first, &mut block[..out.len()]);
                    for (out, x) in out.iter_mut().zip(block) {
                        *out = U::from_i64(if to.is_bool() { (x != 0) as i64 } else { x });
                    }
                }
                (None, None) => {}
            }
        }
    })))
}

/// Elements that are converted at once.
const BLOCK: usize = 256;

/// Reads elements from a number on.
type Reader<'a, X> = Box<dyn Fn(usize, &mut [X]) + Sync + 'a>;

fn read<T: Number, X>(from: &[T], to: &mut [X], convert: impl Fn(T) -> X) {
    to.iter_mut().zip(from).for_each(|(to, &x)| *to = convert(x));
}
