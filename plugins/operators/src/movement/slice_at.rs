//! `Slice` between places that are computed, as NumPy has them: below zero they count from the end.
//!
//! ```text
//! begin = clip(s < 0 ? s + n : s, 0, n)      count = ceil(max(end - begin, 0) / step)      at most n
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::found::numbers::{between, element, extent, list, number};
use crate::onnx::steps::below_zero;

/// One axis of a slice.
struct Part {
    axis: usize,
    begin: Value,
    step: i64,
    count: Dim,
}

/// `Slice` whose starts or ends are computed; axes and steps are known.
#[rule(import.onnx, domain = "tenon.found", key = "Slice", since = 10)]
fn slice(node: &mut Node<'_>) -> Outputs {
    let (x, starts, ends) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let dims = node.dims(x)?;
    let counts = [starts, ends].map(|list| {
        let dims = node.dims(list).ok()?;
        node.terms().dim_value(*dims.first()?)
    });
    let [Some(count), Some(of_ends)] = counts else {
        return unsupported("places of which it is not known how many they are");
    };
    let axes = node.optional_ints(3)?.unwrap_or_else(|| (0..count).collect());
    let steps = node.optional_ints(4)?.unwrap_or_else(|| vec![1; axes.len()]);
    if [axes.len() as i64, steps.len() as i64, of_ends] != [count; 3] {
        return invalid("its starts, ends, axes and steps differ in number");
    }
    let axes = node.axes(&axes, dims.len())?;
    let mut parts = Vec::with_capacity(axes.len());
    for (at, &axis) in axes.iter().enumerate() {
        let places = [element(node, starts, at)?, element(node, ends, at)?];
        parts.push(part(node, (axis, dims[axis]), places, steps[at])?);
    }
    taken(node, x, &dims, &parts)
}

/// What is taken of an axis.
fn part(
    node: &mut Node<'_>,
    (axis, dim): (usize, Dim),
    places: [Value; 2],
    step: i64,
) -> Result<Part, Problem> {
    if step == 0 || step.checked_abs().is_none() {
        return invalid(format!("one of its steps is {step}"));
    }
    // Forwards a place is one up to the end, backwards one from before the first element on.
    let shift = i64::from(step < 0);
    let whole = number(node, dim)?;
    let last = node.cx().dim_sub(dim, node.cx().dim(shift));
    let [least, most] = [node.cx().dim(-shift), last].map(|dim| number(node, dim));
    let bounds = [least?, most?];
    let mut found = Vec::with_capacity(2);
    for place in places {
        let from_end = node.apply("add", &[place, whole])?;
        let place = below_zero(node, place, from_end)?;
        found.push(between(node, place, bounds)?);
    }
    let (begin, end) = (found[0], found[1]);
    let room = match step > 0 {
        true => node.apply("subtract", &[end, begin])?,
        false => node.apply("subtract", &[begin, end])?,
    };
    let zero = node.scalar_like(room, 0.0)?;
    let room = node.apply("maximum", &[room, zero])?;
    let by = node.cx().dim(step.abs());
    let (by, above) = (number(node, by)?, node.cx().dim(step.abs() - 1));
    let above = number(node, above)?;
    let above = node.apply("add", &[room, above])?;
    let count = node.apply("divide", &[above, by])?;
    let count = extent(node, count, Some(dim))?;
    Ok(Part { axis, begin, step, count })
}

/// A box where all steps are 1, else the elements one axis after the other.
fn taken(node: &mut Node<'_>, mut x: Value, dims: &[Dim], parts: &[Part]) -> Outputs {
    if parts.iter().all(|part| part.step == 1) {
        let zero = node.cx().dim(0);
        let mut first = vec![number(node, zero)?; dims.len()];
        let mut size = dims.to_vec();
        for part in parts {
            first[part.axis] = part.begin;
            size[part.axis] = part.count;
        }
        let first = list(node, &first)?;
        let size = node.shape(&size)?;
        return Ok(vec![node.apply("dynamic_slice", &[x, first, size])?]);
    }
    for part in parts {
        let shape = node.shape(&[part.count])?;
        let places = node.apply("arange", &[shape])?;
        let step = node.cx().dim(part.step);
        let step = number(node, step)?;
        let places = node.apply("multiply", &[places, step])?;
        let places = node.apply("add", &[places, part.begin])?;
        x = node.call("take", &[x, places], &[("axis", (part.axis as i64).into())])?;
    }
    Ok(vec![x])
}
