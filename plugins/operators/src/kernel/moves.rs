//! Elements put elsewhere, without a change: other orders of axes, other layouts.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_bits;
use zerocopy::{FromBytes, Unalign};

use super::space::row_major;
use super::strided;

/// A copy of a tensor by strides.
pub(crate) fn copy(
    tensor: &Tensor,
    first: usize,
    shape: &[usize],
    strides: Vec<isize>,
) -> Result<Tensor> {
    let dtype = tensor.dtype();
    with_bits!(dtype, T => {
        let elements = <[Unalign<T>]>::ref_from_bytes(tensor.bytes()).expect("whole elements");
        let elements = strided::copy(elements, first, shape, strides);
        Ok(Tensor::from_vec_as(dtype, shape.to_vec(), elements))
    })
}

/// A tensor with its axes in another order.
pub(crate) fn permute(tensor: &Tensor, axes: &[usize]) -> Result<Tensor> {
    if axes.iter().copied().eq(0..axes.len()) {
        return Ok(tensor.clone());
    }
    let strides = row_major(tensor.shape());
    let shape: Vec<usize> = axes.iter().map(|&axis| tensor.shape()[axis]).collect();
    copy(tensor, 0, &shape, axes.iter().map(|&axis| strides[axis]).collect())
}

/// An axis that was checked by inference, counted from the start.
pub(crate) fn wrap_axis(axis: i64, rank: usize) -> usize {
    if axis < 0 { (axis + rank as i64) as usize } else { axis as usize }
}

/// A tensor in another layout: each axis is split where either of the layouts splits it, the parts are
/// put in the order of the target, and are taken together again.
pub(crate) fn relayout(tensor: &Tensor, source: &Layout, target: &Layout) -> Result<Tensor> {
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

/// A layout by its name.
pub(crate) fn parse(layout: &str) -> Result<Layout> {
    Ok(Layout::parse(layout)?)
}
