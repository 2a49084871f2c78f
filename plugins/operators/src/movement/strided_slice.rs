//! A range of indices along axes.
//!
//! ```ir
//! %y = strided_slice(%x) { begin = [0], end = [-1] }    f32[9, 3]  =>  f32[8, 3]
//! ```
//!
//! Indices are those of NumPy: negative ones count from the end, and all are clamped.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::slice_range::slice_range;
use crate::found::sizes::names;
use crate::kernel::moves::{copy, wrap_axis};
use crate::kernel::space::row_major;
use crate::onnx::fold::{self, Folded};
use crate::onnx::steps::not_below_zero;
use crate::precision::follows_precision;
use crate::program::index::axis_of;
use tenon_plugin_api::program::{self, Extent};

/// A range of indices along axes; negative ones count from the end, and all are clamped
#[op(name = "strided_slice", pattern = "injective")]
pub struct StridedSlice {
    /// first index along each axis
    begin: Vec<i64>,
    /// the index to stop before
    end: Vec<i64>,
    /// steps; 1 when not given
    strides: Option<Vec<i64>>,
    /// the axes; the first ones when not given
    axes: Option<Vec<i64>>,
}

impl Operator for StridedSlice {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let Self { begin, end, .. } = self;
        let strides = self.strides.clone().unwrap_or_else(|| vec![1; begin.len()]);
        let Some(dims) = tensor.dims else { return cx.arg(0) };
        let axes = match &self.axes {
            Some(axes) => cx.axes("axes", axes, dims.len())?,
            None if begin.len() <= dims.len() => (0..begin.len()).collect(),
            None => return cx.bad_attr("begin", begin, "it is longer than the shape"),
        };
        if [end.len(), strides.len(), axes.len()] != [begin.len(); 3] {
            return cx.unsupported("`begin`, `end`, `strides` and `axes` differ in length");
        }
        let mut sliced = dims.to_vec();
        for (i, &axis) in axes.iter().enumerate() {
            if strides[i] == 0 {
                return cx.bad_attr("strides", &strides, "a step of 0 leads nowhere");
            }
            sliced[axis] = slice_extent(cx, dims[axis], begin[i], end[i], strides[i])?;
        }
        Ok(cx.tensor_type(tensor.dtype, Some(&sliced)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let tensor = cx.arg(0)?;
        let (_, shape) = cx.out()?;
        let Self { begin, end, .. } = self;
        let count = begin.len();
        let steps = self.strides.clone().unwrap_or_else(|| vec![1; count]);
        let axes = self.axes.clone().unwrap_or_else(|| (0..count as i64).collect());
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
}

/// Each element from where it is.
#[rule(compute)]
fn program(op: &StridedSlice, program: &mut Program) -> Result<()> {
    let input = program.input(0);
    let rank = input.shape().len();
    let axis = |position: usize| match &op.axes {
        Some(axes) => axis_of(axes[position], rank),
        None => axis_of(position as i64, rank),
    };
    let axes: Vec<usize> = (0..op.begin.len()).map(axis).collect::<Result<_>>()?;
    program.set(&program.output(0), |indices| {
        let mut source = indices.to_vec();
        for (position, (&begin, axis)) in op.begin.iter().zip(axes).enumerate() {
            let stride = op.strides.as_ref().map_or(1, |strides| strides[position]);
            let first = first_index(program, input.shape()[axis], begin, stride);
            source[axis] = indices[axis] * stride + first;
        }
        input.at(&source)
    });
    Ok(())
}

/// The first index of a slice of an axis of `extent`: counted from the end when negative, and moved to the nearest that is there.
fn first_index(program: &Program, extent: Dim, begin: i64, stride: i64) -> program::Scalar<'_> {
    let extent = extent.index(program);
    let begin = program.index(begin) + if begin < 0 { extent } else { program.index(0) };
    match stride > 0 {
        true => begin.max(0).min(extent),
        false => begin.max(-1).min((extent - 1).max(-1)),
    }
}

fn slice_extent(cx: &InferCx<'_>, dim: Dim, begin: i64, end: i64, stride: i64) -> Result<Dim> {
    if let Some(extent) = cx.value(dim) {
        return Ok(cx.dim(slice_range(extent, begin, end, stride).1));
    }
    if stride < 0 {
        return Ok(extent_backwards(cx, dim, [begin, end], stride));
    }
    let zero = cx.dim(0);
    let at_least = |dim: Dim, bound: i64| cx.lower_bound(dim).is_some_and(|least| least >= bound);
    let positive = |dim: Dim| if at_least(dim, 0) { dim } else { cx.dim_max(dim, zero) };
    let clamp = |index: i64| match index {
        _ if index >= i32::MAX as i64 => dim,
        _ if index <= -(i32::MAX as i64) => zero,
        0.. if at_least(dim, index) => cx.dim(index),
        0.. => cx.dim_min(cx.dim(index), dim),
        _ => positive(cx.dim_add(dim, cx.dim(index))),
    };
    let room = match begin {
        ..0 if clamp(end) == dim => cx.dim_min(cx.dim(begin.saturating_neg()), dim),
        0.. if clamp(end) == dim => positive(cx.dim_sub(dim, cx.dim(begin))),
        _ => positive(cx.dim_sub(clamp(end), clamp(begin))),
    };
    let room = cx.dim_add(room, cx.dim(stride - 1));
    Ok(cx.dim_floor_div(room, cx.dim(stride)))
}

/// How many indices a slice has that goes backwards along a symbolic dimension.
fn extent_backwards(cx: &InferCx<'_>, dim: Dim, places: [i64; 2], stride: i64) -> Dim {
    let [zero, before] = [0, -1].map(|value| cx.dim(value));
    let last = cx.dim_add(dim, before);
    let [begin, end] = places.map(|place| match place {
        -1 => last,
        0.. if place >= i32::MAX as i64 => last,
        0.. => cx.dim_min(cx.dim(place), last),
        _ if place <= -(i32::MAX as i64) => before,
        _ => cx.dim_max(cx.dim_add(dim, cx.dim(place)), before),
    });
    let room = cx.dim_sub(begin, end);
    let room = match cx.lower_bound(room) {
        Some(0..) => room,
        _ => cx.dim_max(room, zero),
    };
    let by = stride.saturating_neg();
    cx.dim_floor_div(cx.dim_add(room, cx.dim(by - 1)), cx.dim(by))
}

/// A slice of all is its argument. Extents that are equal do not say that the elements are: it may be a reversal.
#[rule(simplify)]
fn simplify(op: &StridedSlice, at: &mut Site<'_>) -> Option<Expr> {
    let is_in_order = op.strides.iter().flatten().all(|&step| step == 1);
    is_in_order.then(|| at.same_type(at.arg(0))).flatten()
}

follows_precision!(StridedSlice);

/// Along the places of its axes.
#[rule(layout)]
fn layout(op: &StridedSlice, at: &mut Following<'_>) -> Option<Carried> {
    let x = at.carried()?;
    let first: Vec<i64> = (0..op.begin.len() as i64).collect();
    let places = x.places(op.axes.as_ref().unwrap_or(&first))?;
    at.with_attr(x, "axes", places.into())
}

/// `g` with zeros where nothing was read.
#[rule(gradient)]
fn gradient(op: &StridedSlice, at: &mut Adjoint<'_>) -> Result<Grads> {
    let begin = &op.begin;
    let steps = op.strides.clone().unwrap_or_else(|| vec![1; begin.len()]);
    let axes = op.axes.clone().unwrap_or_else(|| (0..begin.len() as i64).collect());
    let shape = at.extents(at.arg(0))?;
    let mut g = at.grad();
    let counts = at.extents(g)?;
    for (place, &axis) in axes.iter().enumerate() {
        let axis = wrap_axis(axis, shape.len());
        let (extent, count, step) = (shape[axis], counts[axis], steps[place]);
        if count == 0 {
            return Ok(Grads::of([at.zeros_like(at.arg(0))?]));
        }
        let (mut first, _) = slice_range(extent, begin[place], op.end[place], step);
        if step < 0 {
            // The last element that was read is the first one in the tensor.
            first += (count - 1) * step;
            let whole = |value: i64| AttrValue::Ints(vec![value]);
            let attrs = [
                ("axes", whole(axis as i64)),
                ("begin", whole(-1)),
                ("end", whole(i64::MIN)),
                ("strides", whole(-1)),
            ];
            g = at.apply_with("strided_slice", &[g], &attrs);
        }
        g = at.spread(g, axis, step.abs())?;
        let length = (count - 1) * step.abs() + 1;
        let mut widths = vec![[0, 0]; shape.len()];
        widths[axis] = [first, extent - first - length];
        g = at.pad(g, &widths);
    }
    Ok(Grads::of([g]))
}

/// `Slice`, its ranges attributes or inputs. What begins or ends at a symbolic place is a `dynamic_slice`, of whose result
/// the rest is taken.
#[rule(import.onnx, key = "Slice", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let mut x = node.input(0)?;
    let dims = node.dims(x)?;
    let mut ranges = ranges(node, &dims)?;
    let is_symbolic = |range: &Range| matches!(range.ends, Ends::Symbolic { .. });
    if ranges.iter().any(is_symbolic) {
        x = dynamic(node, x, &dims, &ranges)?;
        ranges.retain(|range| !is_symbolic(range) || range.step != 1);
        if ranges.is_empty() {
            return Ok(vec![x]);
        }
    }
    let list = |of: fn(&Range) -> i64| -> Vec<i64> { ranges.iter().map(of).collect() };
    let attrs = [
        ("begin", list(|range| range.known().0).into()),
        ("end", list(|range| range.known().1).into()),
        ("strides", list(|range| range.step).into()),
        ("axes", list(|range| range.axis as i64).into()),
    ];
    Ok(vec![node.call("strided_slice", &[x], &attrs)?])
}

/// The part of `x` between the symbolic places, everything along the other axes.
fn dynamic(
    node: &mut Node<'_>,
    x: Value,
    dims: &[Dim],
    ranges: &[Range],
) -> Result<Value, Problem> {
    let mut first = vec![node.cx().dim(0); dims.len()];
    let mut size = dims.to_vec();
    for range in ranges {
        if let Ends::Symbolic { start, end } = range.ends {
            let [start, end] = [start, end].map(|place| place_in(node, place, dims[range.axis]));
            let extent = size[range.axis];
            let room = node.cx().dim_sub(end, start);
            // A place is never behind the end of its axis.
            size[range.axis] = if end == extent { room } else { not_below_zero(node, room) };
            first[range.axis] = start;
        }
    }
    for places in [&mut first, &mut size] {
        if !places.iter().all(|&dim| node.terms().is_small_dim(dim)) {
            *places = names(node, places)?;
        }
    }
    let first = node.known(&Known::vector(first))?;
    let size = node.shape(&size)?;
    node.apply("dynamic_slice", &[x, first, size])
}

/// A place in an axis of this extent, as NumPy has it: one below zero counts from the end, one outside is the nearest.
fn place_in(node: &Node<'_>, place: Dim, extent: Dim) -> Dim {
    let cx = node.cx();
    let bound = |dim| node.terms().dim_lower_bound(dim);
    // Exporters write the largest numbers for "to the end".
    const FAR: i64 = i32::MAX as i64;
    match node.terms().dim_value(place) {
        Some(FAR..) => return extent,
        Some(place) if place <= -FAR => return cx.dim(0),
        _ => {}
    }
    let opposite = cx.dim_mul(place, cx.dim(-1));
    let place = match (bound(place), bound(opposite)) {
        (Some(0..), _) => place,
        (_, Some(1..)) => cx.dim_add(place, extent),
        _ => {
            let is_below_zero = cx.dim_min(cx.dim_max(opposite, cx.dim(0)), cx.dim(1));
            cx.dim_add(place, cx.dim_mul(extent, is_below_zero))
        }
    };
    let place = not_below_zero(node, place);
    match bound(cx.dim_sub(extent, place)) {
        Some(0..) => place,
        _ => cx.dim_min(place, extent),
    }
}

/// What a slice takes of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    axis: usize,
    ends: Ends,
    step: i64,
}

/// Where a slice begins, and where it stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Known { start: i64, end: i64 },
    Symbolic { start: Dim, end: Dim },
}

impl Range {
    /// Start and end; everything where it is symbolic, since that has been cut out by then.
    fn known(&self) -> (i64, i64) {
        match self.ends {
            Ends::Known { start, end } => (start, end),
            Ends::Symbolic { .. } => (0, i64::MAX),
        }
    }
}

/// The ranges that a `Slice` of a tensor of these dimensions takes.
fn ranges(node: &Node<'_>, dims: &[Dim]) -> Result<Vec<Range>, Problem> {
    let (starts, ends, axes, steps) = if node.version() < 10 {
        let bounds = (node.ints("starts")?, node.ints("ends")?);
        let (Some(starts), Some(ends)) = bounds else {
            return invalid("its attributes `starts` and `ends` are missing");
        };
        let dims = |values: &[i64]| values.iter().map(|&value| node.cx().dim(value)).collect();
        (dims(&starts), dims(&ends), node.ints("axes")?, None)
    } else {
        (node.input_dims(1)?, node.input_dims(2)?, node.optional_ints(3)?, node.optional_ints(4)?)
    };
    let (starts, ends): (Vec<Dim>, Vec<Dim>) = (starts, ends);
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return invalid("its starts, ends, axes and steps differ in number");
    }
    let axes = node.axes(&axes, dims.len())?;
    let mut found = Vec::with_capacity(axes.len());
    for (i, &axis) in axes.iter().enumerate() {
        let step = steps[i];
        if step == 0 {
            return invalid("one of its steps is 0");
        }
        let ends = match [starts[i], ends[i]].map(|place| index(node, place, dims[axis], step)) {
            [Some(mut start), Some(end)] => {
                // One that lies before the first element is the first; only an end may lie before it.
                match node.terms().dim_value(dims[axis]) {
                    _ if step > 0 => {}
                    Some(extent) => start = start.max(-extent),
                    None if start >= -1 => {}
                    None => {
                        let text = node.terms().dim_text(dims[axis]);
                        return unsupported(format!(
                            "a slice backwards from place {start} of the extent `{text}`"
                        ));
                    }
                }
                Ends::Known { start, end }
            }
            _ if step < 0 => return unsupported("a slice backwards from or to a symbolic place"),
            _ => Ends::Symbolic { start: starts[i], end: ends[i] },
        };
        found.push(Range { axis, ends, step });
    }
    Ok(found)
}

/// A start or end as a number. One that is the extent of the axis is beyond its last element.
fn index(node: &Node<'_>, index: Dim, extent: Dim, step: i64) -> Option<i64> {
    match node.terms().dim_value(index) {
        None if index == extent && step > 0 => Some(i64::MAX),
        value => value,
    }
}

/// `Slice` of dimensions.
#[rule(import.onnx, key = "Slice", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| part(node, &inputs[0]))
}

/// A part of what is known as dimensions.
fn part(node: &Node<'_>, data: &Known) -> Result<Option<Known>, Problem> {
    let dims: Vec<Dim> = data.shape.iter().map(|&extent| node.cx().dim(extent as i64)).collect();
    let mut along: Vec<Vec<usize>> = data.shape.iter().map(|&all| (0..all).collect()).collect();
    for range in ranges(node, &dims)? {
        let Ends::Known { start, end } = range.ends else { return Ok(None) };
        along[range.axis] = taken(data.shape[range.axis] as i64, start, end, range.step);
    }
    // From the first axis to the last: the places of what is taken along those so far.
    let mut places = vec![0];
    for (indices, &extent) in along.iter().zip(&data.shape) {
        let of_row = |&row: &usize| indices.iter().map(move |index| row * extent + index);
        places = places.iter().flat_map(of_row).collect();
    }
    let shape = along.iter().map(Vec::len).collect();
    let elements = places.into_iter().map(|place: usize| data.elements[place]).collect();
    Ok(Some(Known { dtype: data.dtype, shape, elements }))
}

/// The indices along an axis of `extent` elements that a slice takes.
fn taken(extent: i64, start: i64, end: i64, step: i64) -> Vec<usize> {
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let clamp = |index: i64| {
        let index = if index < 0 { index.saturating_add(extent) } else { index };
        index.clamp(low, high.max(low))
    };
    let (mut at, end) = (clamp(start), clamp(end));
    let mut indices = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        indices.push(at as usize);
        at = at.saturating_add(step);
    }
    indices
}
