//! Operators that move elements without changing them, and those on shapes.

use super::space::{broadcast_strides, row_major};
use super::{Result, strided, with_bits, with_number};
use crate::eval::Tensor;
use crate::eval::kernels::number::Number;
use crate::ir::{DType, TermView};
use crate::ops::{EvalCx, Layout, OpError};

/// The argument in the shape of the result.
pub(crate) fn reshape(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (_, shape) = cx.out()?;
    let tensor = cx.arg(0)?;
    match tensor.len() == shape.iter().product::<usize>() {
        true => Ok(vec![tensor.reshaped(shape.to_vec())]),
        false => Err(OpError::Value(format!(
            "{:?} and {shape:?} have different numbers of elements",
            tensor.shape()
        ))),
    }
}

/// A copy of a tensor by strides.
pub(super) fn copy(
    tensor: &Tensor,
    first: usize,
    shape: &[usize],
    strides: Vec<isize>,
) -> Result<Tensor> {
    let dtype = tensor.dtype();
    with_bits!(dtype, T => {
        let elements = strided::copy(&tensor.elements::<T>(), first, shape, strides);
        Ok(Tensor::from_vec_as(dtype, shape.to_vec(), elements))
    })
}

/// A tensor with its axes in another order.
pub(super) fn permute(tensor: &Tensor, axes: &[usize]) -> Result<Tensor> {
    if axes.iter().copied().eq(0..axes.len()) {
        return Ok(tensor.clone());
    }
    let strides = row_major(tensor.shape());
    let shape: Vec<usize> = axes.iter().map(|&axis| tensor.shape()[axis]).collect();
    copy(tensor, 0, &shape, axes.iter().map(|&axis| strides[axis]).collect())
}

pub(crate) fn transpose(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let rank = tensor.shape().len();
    let axes: Vec<usize> = match cx.attrs.has("axes") {
        true => cx.attrs.ints("axes")?.iter().map(|&axis| wrap_axis(axis, rank)).collect(),
        false => (0..rank).rev().collect(),
    };
    Ok(vec![permute(tensor, &axes)?])
}

/// An axis that was checked by inference, counted from the start.
pub(super) fn wrap_axis(axis: i64, rank: usize) -> usize {
    if axis < 0 { (axis + rank as i64) as usize } else { axis as usize }
}

pub(crate) fn broadcast_to(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (_, shape) = cx.out()?;
    let tensor = cx.arg(0)?;
    Ok(vec![copy(tensor, 0, shape, broadcast_strides(shape, tensor.shape()))?])
}

pub(crate) fn full(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let count = shape.iter().product();
    with_number!(dtype, T => {
        let value = match cx.attrs.given().get("value") {
            Some(TermView::Int(value)) => T::from_i64(value),
            Some(TermView::Float(value)) => T::from_f64(value),
            Some(TermView::Bool(value)) => T::from_i64(value as i64),
            _ => return Err(OpError::Value("`value` is no number and no truth value".into())),
        };
        let value = match dtype {
            DType::BOOL => T::from_i64((value != T::default()) as i64),
            _ => value,
        };
        Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), vec![value; count])])
    })
}

/// The shape of the argument, as a tensor.
pub(crate) fn shape_of(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let shape: Vec<i64> = cx.arg(0)?.shape().iter().map(|&dim| dim as i64).collect();
    Ok(vec![Tensor::from_vec(vec![shape.len()], shape)])
}

pub(crate) fn layout_transform(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let source = parse(cx.attrs.str("src_layout")?)?;
    let target = parse(cx.attrs.str("dst_layout")?)?;
    Ok(vec![relayout(cx.arg(0)?, &source, &target)?])
}

pub(super) fn parse(layout: &str) -> Result<Layout> {
    Ok(Layout::parse(layout)?)
}

/// A tensor in another layout: each axis is split where either of the layouts splits it, the parts are
/// put in the order of the target, and are taken together again.
pub(super) fn relayout(tensor: &Tensor, source: &Layout, target: &Layout) -> Result<Tensor> {
    if source == target {
        return Ok(tensor.clone());
    }
    // Each part of an axis: its extent and its stride in the source, by the letter of the axis.
    let strides = row_major(tensor.shape());
    let mut parts: Vec<(u8, Vec<(usize, isize)>)> = Vec::new();
    for (position, &axis) in source.axes().iter().enumerate() {
        let outer = (tensor.shape()[position], strides[position]);
        let inner = source.block_position(axis).map(|at| (tensor.shape()[at], strides[at]));
        let whole: Vec<(usize, isize)> = [outer].into_iter().chain(inner).collect();
        parts.push((axis, split(whole, target.block(axis).unwrap_or(1) as usize, source)?));
    }
    let of = |axis: u8| parts.iter().find(|(letter, _)| *letter == axis).map(|(_, parts)| parts);
    let (mut inner_shape, mut inner_strides) = (Vec::new(), Vec::new());
    let (mut outer_shape, mut outer_strides) = (Vec::new(), Vec::new());
    let mut shape: Vec<usize> = Vec::with_capacity(target.rank());
    for &axis in target.axes() {
        let Some(parts) = of(axis) else { continue };
        let block = target.block(axis).unwrap_or(1) as usize;
        let inside = inner_parts(parts, block);
        shape.push(parts[..parts.len() - inside].iter().map(|part| part.0).product());
        for &(extent, stride) in &parts[..parts.len() - inside] {
            outer_shape.push(extent);
            outer_strides.push(stride);
        }
    }
    for &(axis, block) in target.blocks() {
        let Some(parts) = of(axis) else { continue };
        let inside = inner_parts(parts, block as usize);
        shape.push(block as usize);
        for &(extent, stride) in &parts[parts.len() - inside..] {
            inner_shape.push(extent);
            inner_strides.push(stride);
        }
    }
    outer_shape.extend(inner_shape);
    outer_strides.extend(inner_strides);
    Ok(copy(tensor, 0, &outer_shape, outer_strides)?.reshaped(shape))
}

/// Splits the parts of an axis, outermost first, so that the innermost ones make up `block`.
fn split(
    mut parts: Vec<(usize, isize)>,
    block: usize,
    source: &Layout,
) -> Result<Vec<(usize, isize)>> {
    let mut covered = 1;
    for index in (0..parts.len()).rev() {
        let (extent, stride) = parts[index];
        if covered == block {
            break;
        }
        let needed = block / covered;
        if extent.is_multiple_of(needed) {
            parts[index] = (needed, stride);
            parts.insert(index, (extent / needed, stride * needed as isize));
            covered = block;
        } else if needed.is_multiple_of(extent) {
            covered *= extent;
        } else {
            return Err(OpError::Unsupported(format!(
                "blocks of {block} cannot be made of those of layout {}",
                source.text()
            )));
        }
    }
    Ok(parts)
}

/// How many of the innermost parts make up `block`.
fn inner_parts(parts: &[(usize, isize)], block: usize) -> usize {
    let mut covered = 1;
    parts
        .iter()
        .rev()
        .take_while(|(extent, _)| {
            let is_inside = covered < block;
            covered *= extent;
            is_inside
        })
        .count()
}

/// The argument itself: a shape and a tensor of its extents are the same here.
pub(crate) fn identity(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    Ok(vec![cx.arg(0)?.clone()])
}
