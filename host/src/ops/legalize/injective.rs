//! Operators each of whose elements is one element of the argument, at an index that is computed.
//!
//! ```text
//! transpose(a: f32[4, 3])              for i in 3 { for j in 4 { out[i, j] = a[j, i] } }
//! ```
//!
//! One loop for each axis of the result and one store, as with the element-wise operators.

use crate::ir::{DType, Dim, TermView};
use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::elementwise::{broadcast, check_broadcast};
use super::kernel::{Buffer, Kernel};
use super::layout_index::{coordinate, place};
use super::program::{axis_of, program, program_of_any_shape};
use super::scalar::Scalar;

/// `transpose`.
pub(crate) fn transpose(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let given = match cx.attrs.has("axes") {
        true => Some(cx.attrs.ints("axes")?),
        false => None,
    };
    injective_of_any_shape(cx, OpPattern::Injective, |kernel, input, _, indices| {
        let rank = indices.len();
        let axes: Vec<usize> = match given {
            Some(axes) => axes.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<_, _>>()?,
            None => (0..rank).rev().collect(),
        };
        let mut source = vec![kernel.index(0); rank];
        for (&axis, &index) in axes.iter().zip(indices) {
            source[axis] = index;
        }
        Ok(input.at(&source))
    })
}

/// `broadcast_to`.
pub(crate) fn broadcast_to(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    injective_of_any_shape(cx, OpPattern::Broadcast, |kernel, input, out, indices| {
        check_broadcast(kernel, &input.shape, &out.shape)?;
        Ok(input.at(&broadcast(kernel, &input.shape, indices)))
    })
}

/// `full`: one value everywhere.
pub(crate) fn full(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let terms = cx.attrs.terms();
    let value = cx.attrs.given().term("value").map_or(TermView::None, |term| terms.view(term));
    program_of_any_shape(cx, OpPattern::Elementwise, |kernel, _, outputs| {
        let out = &outputs[0];
        let value = match value {
            TermView::Int(value) if !out.dtype.is_float() => kernel.int(out.dtype, value),
            TermView::Int(value) => kernel.literal(out.dtype, value as f64),
            TermView::Float(value) => kernel.literal(out.dtype, value),
            TermView::Bool(value) => kernel.literal(out.dtype, value as i64 as f64),
            _ => return Err(OpError::Unsupported("its `value` is no number".into())),
        };
        Ok(kernel.nest(&out.shape, |indices| out.set(indices, value)))
    })
}

/// `strided_slice`.
pub(crate) fn strided_slice(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let begin = cx.attrs.ints("begin")?;
    let strides = match cx.attrs.has("strides") {
        true => cx.attrs.ints("strides")?,
        false => vec![1; begin.len()],
    };
    let given = match cx.attrs.has("axes") {
        true => cx.attrs.ints("axes")?,
        false => (0..begin.len() as i64).collect(),
    };
    injective(cx, OpPattern::Injective, |_, input, _, indices| {
        let mut source = indices.to_vec();
        for (position, &axis) in given.iter().enumerate() {
            let axis = axis_of(axis, indices.len())?;
            let stride = strides[position];
            let extent = input.shape[axis];
            let first = first_index(extent, begin[position], stride);
            source[axis] = indices[axis] * stride + first;
        }
        Ok(input.at(&source))
    })
}

/// The first index of a slice of an axis of `extent`: counted from the end when negative, and clamped.
fn first_index(extent: i64, begin: i64, stride: i64) -> i64 {
    let wrapped = if begin < 0 { begin.saturating_add(extent) } else { begin };
    match stride > 0 {
        true => wrapped.clamp(0, extent),
        false => wrapped.clamp(-1, (extent - 1).max(-1)),
    }
}

/// `layout_transform`.
pub(crate) fn layout_transform(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let source = super::layout_attr(cx, "src_layout")?;
    let target = super::layout_attr(cx, "dst_layout")?;
    injective(cx, OpPattern::Injective, |kernel, input, _, indices| {
        let zero = super::layout_index::Coordinate::whole(kernel.index(0));
        Ok(input.at(&place(&source, |axis| coordinate(&target, indices, axis).unwrap_or(zero))))
    })
}

/// `nn.pad`. Constant padding reads the nearest element where there is none and does not use it, so that
/// no read is out of bounds.
pub(crate) fn pad(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let width = cx.attrs.ints("pad_width")?;
    let mode = cx.attrs.str("mode")?.to_owned();
    let value = cx.attrs.float("value")?;
    injective(cx, OpPattern::Injective, |kernel, input, _, indices| {
        let mut source = indices.to_vec();
        let mut is_inside: Option<Scalar<'_>> = None;
        for (axis, &extent) in input.shape.iter().enumerate() {
            let (before, after) = (width[2 * axis], width[2 * axis + 1]);
            if (before, after) == (0, 0) {
                continue;
            }
            let index = indices[axis] - before;
            source[axis] = match mode.as_str() {
                "reflect" => {
                    let last = kernel.index(extent - 1);
                    last - (last - index.call("abs")).call("abs")
                }
                _ => index.max(0).min(extent - 1),
            };
            let here = index.ge(0).and(index.lt(extent));
            is_inside = Some(is_inside.map_or(here, |before| before.and(here)));
        }
        if mode != "constant" {
            return Ok(input.at(&source));
        }
        let fill = kernel.literal(input.dtype, value);
        if input.shape.contains(&0) {
            return Ok(fill);
        }
        let element = input.at(&source);
        Ok(is_inside.map_or(element, |is_inside| is_inside.select(element, fill)))
    })
}

/// `take`: an index below zero counts from the end, one outside is moved to the nearest inside.
pub(crate) fn take(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let axis = cx.attrs.int("axis")?;
    program(cx, OpPattern::Injective, |kernel, inputs, outputs| {
        let [data, indices] = [&inputs[0], &inputs[1]];
        let axis = axis_of(axis, data.shape.len())?;
        let index_rank = indices.shape.len();
        let extent = data.shape[axis];
        Ok(kernel.nest(&outputs[0].shape, |i| {
            let at = index_at(indices, &i[axis..axis + index_rank], extent);
            let mut source = i[..axis].to_vec();
            source.push(at);
            source.extend(&i[axis + index_rank..]);
            outputs[0].set(i, data.at(&source))
        }))
    })
}

/// An index that a buffer holds: one below zero counts from the end, one outside is moved to the nearest.
pub(super) fn index_at<'k>(indices: &Buffer<'k>, place: &[Scalar<'k>], extent: i64) -> Scalar<'k> {
    let at = indices.at(place).cast(DType::I64);
    at.lt(0).select(at + extent, at).max(0).min(extent - 1)
}

/// A program of one statement over the axes of the result, each element of which is what `element` makes
/// of the argument, the result and the indices.
pub(super) fn injective(
    cx: &mut LegalizeCx<'_>,
    pattern: OpPattern,
    element: impl for<'k> FnOnce(
        &'k Kernel,
        &Buffer<'k>,
        &Buffer<'k>,
        &[Scalar<'k>],
    ) -> Result<Scalar<'k>, OpError>,
) -> Result<(), OpError> {
    program(cx, pattern, |kernel, inputs, outputs| {
        let out = &outputs[0];
        let indices = kernel.axes(out.shape.len());
        let value = element(kernel, &inputs[0], out, &indices)?;
        Ok(kernel.over_axes(&indices, &out.shape, out.set(&indices, value)))
    })
}

/// As [`injective`], for tensors whose dimensions may be symbols.
fn injective_of_any_shape(
    cx: &mut LegalizeCx<'_>,
    pattern: OpPattern,
    element: impl for<'k> FnOnce(
        &'k Kernel,
        &Buffer<'k, Dim>,
        &Buffer<'k, Dim>,
        &[Scalar<'k>],
    ) -> Result<Scalar<'k>, OpError>,
) -> Result<(), OpError> {
    program_of_any_shape(cx, pattern, |kernel, inputs, outputs| {
        let out = &outputs[0];
        let indices = kernel.axes(out.shape.len());
        let value = element(kernel, &inputs[0], out, &indices)?;
        Ok(kernel.over_axes(&indices, &out.shape, out.set(&indices, value)))
    })
}
