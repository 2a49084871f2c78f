//! Arithmetic on single numbers that a call computes.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, reshape_to};

/// A dimension as a number.
pub(crate) fn number(node: &mut Node<'_>, dim: Dim) -> Result<Value, Problem> {
    node.known(&Known::scalar(DType::I64, dim))
}

/// The element at a place of a list of integers, as i64.
pub(crate) fn element(node: &mut Node<'_>, list: Value, at: usize) -> Result<Value, Problem> {
    if let Some(known) = node.elements(list)
        && let Some(&element) = known.elements.get(at)
    {
        return number(node, element);
    }
    let list = cast_to(node, list, DType::I64)?;
    if node.dims(list)?.is_empty() {
        return Ok(list);
    }
    let at = node.cx().dim(at as i64);
    let at = number(node, at)?;
    node.call("take", &[list, at], &[("axis", 0.into())])
}

/// A number between two others.
pub(crate) fn between(
    node: &mut Node<'_>,
    x: Value,
    [least, most]: [Value; 2],
) -> Result<Value, Problem> {
    let x = node.apply("maximum", &[x, least])?;
    node.apply("minimum", &[x, most])
}

/// Numbers side by side.
pub(crate) fn list(node: &mut Node<'_>, numbers: &[Value]) -> Result<Value, Problem> {
    let one = [node.cx().dim(1)];
    let parts = numbers.iter().map(|&number| reshape_to(node, number, &one));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    crate::onnx::steps::joined(node, &parts, 0)
}

/// A number that is computed as an extent, of which it is not known what it is at most, or only that it is no more than `most`.
pub(crate) fn extent(
    node: &mut Node<'_>,
    number: Value,
    most: Option<Dim>,
) -> Result<Dim, Problem> {
    let one = [node.cx().dim(1)];
    let counts = reshape_to(node, number, &one)?;
    let dims = match most {
        Some(most) => super::first::bound(node, counts, &[most])?,
        None => super::first::bound_open(node, counts)?,
    };
    match dims[..] {
        [dim] => Ok(dim),
        _ => invalid("one number is bound to several"),
    }
}

/// The number at the place where axes of a tensor of `rank` dimensions, which a call computes, name an axis, or another one.
pub(crate) fn of_axis(
    node: &mut Node<'_>,
    axes: &[Value],
    (axis, rank): (usize, usize),
    numbers: &[Value],
    default: Value,
) -> Result<Value, Problem> {
    let [axis, rank] = [axis, rank].map(|number| node.cx().dim(number as i64));
    let from_end = node.cx().dim_sub(axis, rank);
    let [axis, from_end] = [axis, from_end].map(|dim| number(node, dim));
    let (axis, from_end) = (axis?, from_end?);
    let mut found = default;
    for (&named, &number) in axes.iter().zip(numbers) {
        let own = [axis, from_end].map(|own| node.apply("equal", &[named, own]));
        let [is_axis, is_from_end] = own;
        let is_named = node.apply("logical_or", &[is_axis?, is_from_end?])?;
        found = node.apply("where", &[is_named, number, found])?;
    }
    Ok(found)
}

/// A number, or one that is no extent where axes of a tensor of `rank` dimensions, which a call computes, name none of these.
pub(crate) fn if_axes_are_there(
    node: &mut Node<'_>,
    axes: &[Value],
    rank: usize,
    mut count: Value,
) -> Result<Value, Problem> {
    if axes.is_empty() {
        return Ok(count);
    }
    let rank = rank as i64;
    let [least, end, none] = [-rank, rank, -1].map(|value| node.scalar(DType::I64, value as f64));
    let (least, end, none) = (least?, end?, none?);
    for &axis in axes {
        let is_before = node.apply("less", &[axis, least])?;
        let is_behind = node.apply("greater_equal", &[axis, end])?;
        let is_none = node.apply("logical_or", &[is_before, is_behind])?;
        count = node.apply("where", &[is_none, none, count])?;
    }
    Ok(count)
}
