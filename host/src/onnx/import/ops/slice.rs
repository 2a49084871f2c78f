//! Operators that put tensors together and take parts of them.

use crate::ir::{Context, Dim};
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;

use super::scalar::scalar_like;

type Outputs = Result<Vec<Value>, Problem>;

/// `Concat`.
pub(in crate::onnx::import) fn concat(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let inputs = cx.all_inputs()?;
    let Some(axis) = cx.int("axis")? else { return invalid("its attribute `axis` is missing") };
    if let &[only] = inputs.as_slice() {
        return Ok(vec![only]);
    }
    let tuple = cx.tuple(&inputs)?;
    Ok(vec![cx.call("concatenate", &[tuple], &[("axis", axis.into())])?])
}

/// What a slice takes of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::onnx::import) struct Range {
    pub(in crate::onnx::import) axis: usize,
    pub(in crate::onnx::import) start: i64,
    pub(in crate::onnx::import) end: i64,
    pub(in crate::onnx::import) step: i64,
}

/// `Slice` with its ranges as attributes.
pub(in crate::onnx::import) fn slice_by_attributes(cx: &mut NodeCx<'_, '_>) -> Outputs {
    sliced(cx)
}

/// `Slice` with its ranges as inputs.
pub(in crate::onnx::import) fn slice(cx: &mut NodeCx<'_, '_>) -> Outputs {
    sliced(cx)
}

fn sliced(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let ranges = ranges(cx, &dims)?;
    let list = |of: fn(&Range) -> i64| -> Vec<i64> { ranges.iter().map(of).collect() };
    let attrs = [
        ("begin", list(|range| range.start).into()),
        ("end", list(|range| range.end).into()),
        ("strides", list(|range| range.step).into()),
        ("axes", list(|range| range.axis as i64).into()),
    ];
    Ok(vec![cx.call("strided_slice", &[x], &attrs)?])
}

/// The ranges that a `Slice` of a tensor of these dimensions takes.
pub(in crate::onnx::import) fn ranges(
    cx: &NodeCx<'_, '_>,
    dims: &[Dim],
) -> Result<Vec<Range>, Problem> {
    let (starts, ends, axes, steps) = if cx.version < 10 {
        let bounds = (cx.ints("starts")?, cx.ints("ends")?);
        let (Some(starts), Some(ends)) = bounds else {
            return invalid("its attributes `starts` and `ends` are missing");
        };
        let dims = |values: &[i64]| values.iter().map(|&value| cx.cx().dim(value)).collect();
        (dims(&starts), dims(&ends), cx.ints("axes")?, None)
    } else {
        (cx.input_dims(1)?, cx.input_dims(2)?, cx.optional_ints(3)?, cx.optional_ints(4)?)
    };
    let (starts, ends): (Vec<Dim>, Vec<Dim>) = (starts, ends);
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return invalid("its starts, ends, axes and steps differ in number");
    }
    let axes = cx.axes(&axes, dims.len())?;
    let mut found = Vec::with_capacity(axes.len());
    for (i, &axis) in axes.iter().enumerate() {
        let step = steps[i];
        if step == 0 {
            return invalid("one of its steps is 0");
        }
        let index = |dim: Dim| index(cx, dim, dims[axis], step);
        found.push(Range { axis, start: index(starts[i])?, end: index(ends[i])?, step });
    }
    Ok(found)
}

/// A start or end as a number. One that is the extent of the axis is beyond its last element.
fn index(cx: &NodeCx<'_, '_>, index: Dim, extent: Dim, step: i64) -> Result<i64, Problem> {
    match cx.terms().dim_value(index) {
        Some(value) => Ok(value),
        None if index == extent && step > 0 => Ok(i64::MAX),
        None => unsupported("a slice from or to a symbolic place"),
    }
}

/// `Gather`: negative indices count from the end.
pub(in crate::onnx::import) fn gather(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    let dims = cx.dims(x)?;
    let axis = cx.axis(cx.int_or("axis", 0)?, dims.len())?;
    let indices = from_the_start(cx, indices, dims[axis])?;
    Ok(vec![cx.call("take", &[x, indices], &[("axis", (axis as i64).into())])?])
}

/// The indices, none of them negative.
fn from_the_start(cx: &mut NodeCx<'_, '_>, indices: Value, extent: Dim) -> Result<Value, Problem> {
    let Some(extent) = cx.terms().dim_value(extent) else {
        // A constant index that is not negative needs nothing.
        let numbers = cx.elements(indices).and_then(|known| known.numbers(cx.terms()));
        return match numbers.is_some_and(|numbers| numbers.iter().all(|&index| index >= 0)) {
            true => Ok(indices),
            false => unsupported("indices into a symbolic dimension that may be negative"),
        };
    };
    if let Some(known) = cx.elements(indices)
        && let Some(numbers) = known.numbers(cx.terms())
    {
        if let Some(index) = numbers.iter().find(|&index| !(-extent..extent).contains(index)) {
            return invalid(format!("index {index} into a dimension of {extent}"));
        }
        let mut known = (*known).clone();
        let fixed = |index: i64| cx.cx().dim(if index < 0 { index + extent } else { index });
        known.elements = numbers.into_iter().map(fixed).collect();
        return Ok(cx.known(known));
    }
    let dtype = cx.dtype(indices)?;
    if !dtype.is_signed() {
        return Ok(indices);
    }
    let zero = scalar_like(cx, indices, 0.0)?;
    let is_negative = cx.apply("less", &[indices, zero])?;
    let extent = scalar_like(cx, indices, extent as f64)?;
    let moved = cx.apply("add", &[indices, extent])?;
    cx.apply("where", &[is_negative, moved, indices])
}

/// `Split` into parts of given lengths, or into equal ones of which the last may be shorter.
pub(in crate::onnx::import) fn split(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let axis = cx.axis(cx.int_or("axis", 0)?, dims.len())?;
    let lengths = match cx.version < 13 {
        true => cx.ints("split")?,
        false => cx.optional_ints(1)?,
    };
    let extent = cx.terms().dim_value(dims[axis]);
    let attr = match lengths {
        Some(lengths) => ("indices", indices(&lengths, extent)?.into()),
        None => {
            let count = cx.int("num_outputs")?.unwrap_or(cx.output_count as i64);
            if count < 1 || count > cx.output_count as i64 {
                return invalid(format!("it has {} outputs for {count} parts", cx.output_count));
            }
            match extent {
                Some(extent) if extent % count != 0 => {
                    let length = extent / count + 1;
                    let starts = (1..count).map(|part| part.saturating_mul(length).min(extent));
                    ("indices", starts.collect::<Vec<i64>>().into())
                }
                _ => ("sections", count.into()),
            }
        }
    };
    let parts = cx.call("split", &[x], &[attr, ("axis", (axis as i64).into())])?;
    cx.items(parts)
}

/// Where the second and later parts begin.
fn indices(lengths: &[i64], extent: Option<i64>) -> Result<Vec<i64>, Problem> {
    let mut starts = Vec::with_capacity(lengths.len());
    let mut sum = 0i64;
    for &length in lengths {
        starts.push(sum);
        sum = match sum.checked_add(length) {
            Some(sum) if length >= 0 => sum,
            _ => return invalid(format!("its parts have the lengths {lengths:?}")),
        };
    }
    if extent.is_some_and(|extent| extent != sum) {
        return invalid(format!("the lengths {lengths:?} of its parts do not make the whole"));
    }
    Ok(starts.split_off(1.min(starts.len())))
}
