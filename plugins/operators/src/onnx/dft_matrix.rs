//! The matrix of a transform whose length a call says.
//!
//! ```text
//! turns[a, b] = a * b mod n        c = cos(2 pi turns / n)    s = sin(2 pi turns / n)
//! a real part gives (c, -s), an imaginary one (s, c); of an inverse the signs of s are the others, and all is divided by n
//! ```

use std::f64::consts::TAU;

use tenon_plugin_api::rule::prelude::*;

use super::dft::Kind;
use super::steps::{cast_to, joined, left_of, not_below_zero, reshape_to, scaled};
use crate::found::first::first;

/// The matrix of signals of `length`, of so many parts: the rows that it has, and the extents of what its columns are.
pub(super) fn matrix(
    node: &mut Node<'_>,
    dtype: DType,
    (kind, length, parts): (Kind, Dim, i64),
) -> Result<(Value, [Dim; 2]), Problem> {
    let half = half(node, length);
    let (rows, columns) = match kind {
        Kind::Forward | Kind::Inverse => (length, length),
        Kind::Half => (length, half),
        Kind::InverseOfHalf => (half, length),
    };
    let one = node.cx().dim(1);
    let from = counted(node, &[rows, one, one, one], rows)?;
    let to = counted(node, &[one, one, columns, one], columns)?;
    let turns = node.apply("multiply", &[from, to])?;
    let period = node.known(&Known::scalar(DType::I64, length))?;
    let turns = left_of(node, turns, period)?;
    let turns = cast_to(node, turns, DType::F64)?;
    let (angle, wide) = (scaled(node, turns, TAU)?, cast_to(node, period, DType::F64)?);
    let angle = node.apply("divide", &[angle, wide])?;
    let (cosine, sine) = (node.apply("cos", &[angle])?, node.apply("sin", &[angle])?);
    let less = node.apply("negative", &[sine])?;
    let is_inverse = matches!(kind, Kind::Inverse | Kind::InverseOfHalf);
    let (real, imaginary) = match is_inverse {
        true => ([cosine, sine], [less, cosine]),
        false => ([cosine, less], [sine, cosine]),
    };
    let kept = if kind == Kind::InverseOfHalf { 1 } else { 2 };
    let real = joined(node, &real[..kept], 3)?;
    let all = match parts {
        1 => real,
        _ => {
            let imaginary = joined(node, &imaginary[..kept], 3)?;
            let [real, imaginary] = match kind {
                Kind::InverseOfHalf => weighted(node, from, period, [real, imaginary])?,
                _ => [real, imaginary],
            };
            joined(node, &[real, imaginary], 1)?
        }
    };
    let all = if is_inverse { node.apply("divide", &[all, wide])? } else { all };
    let values = [columns, node.cx().dim(kept as i64)];
    let (parts, width) = (node.cx().dim(parts), node.cx().dim_product(&values));
    let rows = node.cx().dim_mul(rows, parts);
    let all = cast_to(node, all, dtype)?;
    Ok((reshape_to(node, all, &[rows, width])?, values))
}

/// How many frequencies there are up to the half.
pub(super) fn half(node: &Node<'_>, length: Dim) -> Dim {
    let cx = node.cx();
    cx.dim_add(cx.dim_floor_div(length, cx.dim(2)), cx.dim(1))
}

/// All but the first and the one in the middle stand for their mirror images too, which the sines of these two have not.
fn weighted(
    node: &mut Node<'_>,
    from: Value,
    length: Value,
    [real, imaginary]: [Value; 2],
) -> Result<[Value; 2], Problem> {
    let zero = node.scalar_like(from, 0.0)?;
    let is_first = node.apply("equal", &[from, zero])?;
    let twice = scaled(node, from, 2.0)?;
    let is_middle = node.apply("equal", &[twice, length])?;
    let is_single = node.apply("logical_or", &[is_first, is_middle])?;
    let [none, one, two] = [0.0, 1.0, 2.0].map(|number| node.scalar(DType::F64, number));
    let (none, one, two) = (none?, one?, two?);
    let of_real = node.apply("where", &[is_single, one, two])?;
    let of_imaginary = node.apply("where", &[is_single, none, two])?;
    Ok([
        node.apply("multiply", &[real, of_real])?,
        node.apply("multiply", &[imaginary, of_imaginary])?,
    ])
}

/// The numbers 0, 1, … in a shape.
pub(super) fn counted(node: &mut Node<'_>, dims: &[Dim], extent: Dim) -> Result<Value, Problem> {
    let shape = node.shape(&[extent])?;
    let numbers = node.apply("arange", &[shape])?;
    match dims == [extent] {
        true => Ok(numbers),
        false => reshape_to(node, numbers, dims),
    }
}

/// The first elements along an axis, with zeros behind where there are too few.
pub(super) fn fitted(
    node: &mut Node<'_>,
    x: Value,
    axis: usize,
    count: Dim,
) -> Result<Value, Problem> {
    let (mut dims, dtype) = (node.dims(x)?, node.dtype(x)?);
    if dims[axis] == count {
        return Ok(x);
    }
    let more = node.cx().dim_sub(count, dims[axis]);
    dims[axis] = not_below_zero(node, more);
    let shape = node.shape(&dims)?;
    let attrs = [("value", 0.0.into()), ("dtype", dtype.to_string().into())];
    let zeros = node.call("full", &[shape], &attrs)?;
    let all = joined(node, &[x, zeros], axis as i64)?;
    dims[axis] = count;
    first(node, all, &dims)
}

/// Parts of signals that begin `step` apart, `length` long each.
pub(super) fn frames(
    node: &mut Node<'_>,
    x: Value,
    [samples, step, length]: [Dim; 3],
) -> Result<(Value, Dim), Problem> {
    let (cx, one) = (node.cx(), node.cx().dim(1));
    let step = cx.dim_max(step, one);
    let room = cx.dim_floor_div(cx.dim_sub(samples, length), step);
    let count = not_below_zero(node, cx.dim_add(room, one));
    let starts = counted(node, &[count, one], count)?;
    let step = node.known(&Known::scalar(DType::I64, step))?;
    let starts = node.apply("multiply", &[starts, step])?;
    let within = counted(node, &[one, length], length)?;
    let places = node.apply("add", &[starts, within])?;
    Ok((node.call("take", &[x, places], &[("axis", 1.into())])?, count))
}
