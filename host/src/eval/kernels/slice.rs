//! Operators that put tensors together and take parts of them.

use super::shape::{copy, wrap_axis};
use super::space::row_major;
use super::{Result, with_bits};
use crate::eval::kernels::number::Number;
use crate::eval::{Element, Tensor};
use crate::ir::DType;
use crate::ops::core::slice::slice_range;
use crate::ops::{EvalCx, OpError};

/// The extents before, at and after an axis.
fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

pub(crate) fn concatenate(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let axis = wrap_axis(cx.attrs.int("axis")?, shape.len());
    with_bits!(dtype, T => Ok(vec![join::<T>(cx.args, dtype, shape, axis)]))
}

fn join<T: Element + Default>(
    parts: &[Tensor],
    dtype: DType,
    shape: &[usize],
    axis: usize,
) -> Tensor {
    let (outer, extent, inner) = around(shape, axis);
    let row = extent * inner;
    let mut out = vec![T::default(); outer * row];
    let mut begin = 0;
    for part in parts {
        let length = part.shape()[axis] * inner;
        if length == 0 {
            continue;
        }
        let elements = part.elements::<T>();
        for (out, part) in out.chunks_exact_mut(row).zip(elements.chunks_exact(length)) {
            out[begin..begin + length].copy_from_slice(part);
        }
        begin += length;
    }
    Tensor::from_vec_as(dtype, shape.to_vec(), out)
}

pub(crate) fn split(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let axis = wrap_axis(cx.attrs.int("axis")?, tensor.shape().len());
    let strides = row_major(tensor.shape());
    let mut begin = 0;
    let mut parts = Vec::with_capacity(cx.outs.len());
    for (_, shape) in cx.outs {
        parts.push(copy(tensor, begin * strides[axis] as usize, shape, strides.clone())?);
        begin += shape[axis];
    }
    Ok(parts)
}

pub(crate) fn strided_slice(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let (_, shape) = cx.out()?;
    let (begin, end) = (cx.attrs.ints("begin")?, cx.attrs.ints("end")?);
    let count = begin.len();
    let steps = if cx.attrs.has("strides") { cx.attrs.ints("strides")? } else { vec![1; count] };
    let axes = match cx.attrs.has("axes") {
        true => cx.attrs.ints("axes")?,
        false => (0..count as i64).collect(),
    };
    let mut strides = row_major(tensor.shape());
    let mut first = 0;
    for i in 0..count {
        let axis = wrap_axis(axes[i], strides.len());
        let (start, _) = slice_range(tensor.shape()[axis] as i64, begin[i], end[i], steps[i]);
        first += start as isize * strides[axis];
        strides[axis] *= steps[i] as isize;
    }
    match shape.contains(&0) {
        true => Ok(vec![copy(tensor, 0, shape, vec![0; shape.len()])?]),
        false => Ok(vec![copy(tensor, first as usize, shape, strides)?]),
    }
}

pub(crate) fn take(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (tensor, indices) = (cx.arg(0)?, cx.arg(1)?);
    let (dtype, shape) = cx.out()?;
    let axis = wrap_axis(cx.attrs.int("axis")?, tensor.shape().len());
    let (outer, extent, inner) = around(tensor.shape(), axis);
    let places = places_of(indices, axis, extent)?;
    with_bits!(dtype, T => {
        let elements = tensor.elements::<T>();
        let mut out: Vec<T> = Vec::with_capacity(shape.iter().product());
        for row in 0..outer {
            for place in &places {
                let start = (row * extent + place) * inner;
                out.extend_from_slice(&elements[start..start + inner]);
            }
        }
        Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
    })
}

pub(crate) fn index_add(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (tensor, added) = (cx.arg(0)?, cx.arg(2)?);
    let axis = wrap_axis(cx.attrs.int("axis")?, tensor.shape().len());
    let (outer, extent, inner) = around(tensor.shape(), axis);
    let places = places_of(cx.arg(1)?, axis, extent)?;
    super::with_number!(tensor.dtype(), T => {
        let added = added.elements::<T>();
        let mut out = tensor.elements::<T>().to_vec();
        for row in 0..outer {
            for (number, place) in places.iter().enumerate() {
                let out = &mut out[(row * extent + place) * inner..][..inner];
                let added = &added[(row * places.len() + number) * inner..][..inner];
                out.iter_mut().zip(added).for_each(|(out, &added)| *out = out.add(added));
            }
        }
        Ok(vec![Tensor::from_vec_as(tensor.dtype(), tensor.shape().to_vec(), out)])
    })
}

/// The indices along an axis that a tensor holds; one below zero counts from the end.
fn places_of(indices: &Tensor, axis: usize, extent: usize) -> Result<Vec<usize>> {
    let place = |index: i64| {
        let place = if index < 0 { index + extent as i64 } else { index };
        match (0..extent as i64).contains(&place) {
            true => Ok(place as usize),
            false => Err(OpError::Value(format!(
                "index {index} is outside of axis {axis}, which has extent {extent}"
            ))),
        }
    };
    indices_of(indices)?.into_iter().map(place).collect()
}

fn indices_of(tensor: &Tensor) -> Result<Vec<i64>> {
    super::with_number!(tensor.dtype(), T => {
        Ok(tensor.elements::<T>().iter().map(|&index| index.to_i64()).collect())
    })
}

pub(crate) fn pad(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let (dtype, shape) = cx.out()?;
    let width = cx.attrs.ints("pad_width")?;
    let mode = cx.attrs.str("mode")?;
    // For each axis, which index of the source each index of the result shows, if any.
    let sources: Vec<Vec<Option<usize>>> = shape
        .iter()
        .enumerate()
        .map(|(axis, &extent)| {
            let length = tensor.shape()[axis] as i64;
            let at = |index: usize| padded(index as i64 - width[2 * axis], length, mode);
            (0..extent).map(at).collect()
        })
        .collect();
    with_bits!(dtype, T => {
        let fill: T = super::with_number!(dtype, N => {
            let value = N::from_f64(cx.attrs.float("value")?);
            let scalar = Tensor::from_vec_as(dtype, Vec::new(), vec![value]);
            Ok(scalar.elements::<T>()[0])
        })?;
        Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), fill_padded(tensor, shape, &sources, fill))])
    })
}

/// The index of an axis of `length` that is shown at `index`, which may lie outside.
fn padded(index: i64, length: i64, mode: &str) -> Option<usize> {
    let inside = match mode {
        "edge" => index.clamp(0, length - 1),
        "reflect" if index < 0 => -index,
        "reflect" if index >= length => 2 * (length - 1) - index,
        _ => index,
    };
    (0..length).contains(&inside).then_some(inside as usize)
}

fn fill_padded<T: Element>(
    tensor: &Tensor,
    shape: &[usize],
    sources: &[Vec<Option<usize>>],
    fill: T,
) -> Vec<T> {
    let elements = tensor.elements::<T>();
    let mut out = vec![fill; shape.iter().product()];
    let Some((last, outer)) = sources.split_last() else { return elements.to_vec() };
    let strides = row_major(tensor.shape());
    let mut index = vec![0; outer.len()];
    for out in out.chunks_exact_mut(last.len().max(1)) {
        let offset = outer.iter().enumerate().try_fold(0, |offset, (axis, sources)| {
            sources[index[axis]].map(|source| offset + source * strides[axis] as usize)
        });
        if let Some(offset) = offset {
            for (out, source) in out.iter_mut().zip(last) {
                if let Some(source) = source {
                    *out = elements[offset + source];
                }
            }
        }
        for axis in (0..outer.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}
