//! Brings elements into the one order that the rest of the host knows: row-major, little-endian,
//! booleans 0 or 1.

use super::{NpyProblem, NpyType};

pub(super) fn normalize(
    data: &mut Vec<u8>,
    dtype: NpyType,
    shape: &[usize],
    big_endian: bool,
    fortran_order: bool,
) -> Result<(), NpyProblem> {
    if big_endian {
        data.chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    }
    if dtype == NpyType::Bool {
        data.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    let long_dims = shape.iter().filter(|&&dim| dim != 1).count();
    if fortran_order && long_dims > 1 && !data.is_empty() {
        *data = match dtype.bytes() {
            1 => to_row_major::<1>(data, shape),
            2 => to_row_major::<2>(data, shape),
            4 => to_row_major::<4>(data, shape),
            _ => to_row_major::<8>(data, shape),
        }
        .ok_or(NpyProblem::Memory { bytes: data.len() })?;
    }
    Ok(())
}

/// Copies column-major elements of `SIZE` bytes into row-major order; no dimension is 0.
fn to_row_major<const SIZE: usize>(data: &[u8], shape: &[usize]) -> Option<Vec<u8>> {
    let (elements, _) = data.as_chunks::<SIZE>();
    let mut out = Vec::new();
    out.try_reserve_exact(data.len()).ok()?;
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |next, &dim| {
            let stride = *next;
            *next *= dim;
            Some(stride)
        })
        .collect();
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    for _ in 0..elements.len() {
        out.extend_from_slice(&elements[at]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    Some(out)
}
