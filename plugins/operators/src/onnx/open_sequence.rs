//! Sequences of open length, whose elements have one type: a tensor with an element in each row.
//!
//! ```text
//! SequenceInsert(s, x)         concatenate((%s, expand_dims(%x)))
//! SequenceAt(s, i)             take(%s, %i)
//! SequenceErase(s, i)          take(%s, …)          the places of all rows but one
//! ConcatFromSequence(s)        transpose and reshape
//! ```
//!
//! While a model is imported such a tensor stands in a tuple in a tuple, `((%s,),)`: what stands in other sequences is no tuple,
//! so this is none of them, and no tensor either.

use tenon_plugin_api::rule::prelude::*;

use super::sequence::Sequence;
use super::steps::{cast_to, joined, not_below_zero, places_along, reshape_to};
use crate::found::numbers::extent;

/// A sequence whose elements are the rows of a tensor.
pub(super) fn of_rows(node: &mut Node<'_>, rows: Value) -> Result<Value, Problem> {
    let inner = node.tuple(&[rows])?;
    node.tuple(&[inner])
}

/// The rows that the elements of a sequence are.
pub(super) fn rows_of(node: &mut Node<'_>, sequence: Sequence) -> Result<Value, Problem> {
    let elements = match sequence {
        Sequence::Open(rows) => return Ok(rows),
        Sequence::Known(elements) => elements,
    };
    let Some(&first) = elements.first() else {
        return unsupported(
            "a sequence that is empty at first, whose elements' type and shape nothing says; \
             the body of a loop may declare them of its input",
        );
    };
    let mut rows = Vec::with_capacity(elements.len());
    for element in elements {
        let [ty, other] = [first, element].map(|value| node.ty(value));
        if ty != other {
            let [ty, other] = [ty, other].map(|ty| node.terms().type_text(ty));
            return unsupported(format!(
                "a sequence of {ty} and {other} whose length, or a place in it, is known in a call only; \
                 its elements must have one type then"
            ));
        }
        rows.push(row_of(node, element)?);
    }
    joined(node, &rows, 0)
}

fn row_of(node: &mut Node<'_>, element: Value) -> Result<Value, Problem> {
    let mut dims = node.dims(element)?;
    dims.insert(0, node.cx().dim(1));
    reshape_to(node, element, &dims)
}

/// Whether rows and an element, or other rows, have one type; an error where not.
fn check_element(node: &Node<'_>, rows: Value, other: Value, first: usize) -> Result<(), Problem> {
    let (dims, of_other) = (node.dims(rows)?, node.dims(other)?);
    if node.dtype(rows)? == node.dtype(other)? && dims[1..] == of_other[first..] {
        return Ok(());
    }
    let dtypes = [node.dtype(rows)?, node.dtype(other)?];
    let [rows, other] = [(dtypes[0], &dims[1..]), (dtypes[1], &of_other[first..])]
        .map(|(dtype, dims)| node.terms().type_text(node.cx().tensor_type(dtype, dims)));
    unsupported(format!("{other} in a sequence of open length whose elements are {rows}"))
}

/// The place that input `index` says, of `count`, or behind these where `may_be_end`; a call that says another one is refused.
fn place(
    node: &mut Node<'_>,
    index: usize,
    (count, may_be_end): (Dim, bool),
) -> Result<Option<Value>, Problem> {
    let Some(place) = node.optional(index) else { return Ok(None) };
    let known = node.elements(place).filter(|known| known.elements.len() == 1);
    let value = known.and_then(|known| node.terms().dim_value(known.elements[0]));
    let place = match value {
        Some(value) => {
            let number = node.cx().dim(value);
            let number = if value < 0 { node.cx().dim_add(number, count) } else { number };
            node.known(&Known::scalar(DType::I64, number))?
        }
        None => from_start(node, place, count)?,
    };
    let most = node.cx().dim_sub(count, node.cx().dim(i64::from(!may_be_end)));
    let known = [count, most].map(|dim| node.terms().dim_value(dim));
    if let (Some(value), [Some(count), Some(most)]) = (value, known) {
        let place_from_start = if value < 0 { value + count } else { value };
        return match (0..=most).contains(&place_from_start) {
            true => Ok(Some(place)),
            false => invalid(format!("the place {value} is not in its sequence")),
        };
    }
    let place = extent(node, place, Some(most))?;
    node.known(&Known::scalar(DType::I64, place)).map(Some)
}

/// A place that may be counted from the end.
fn from_start(node: &mut Node<'_>, place: Value, count: Dim) -> Result<Value, Problem> {
    let place = reshape_to(node, place, &[])?;
    let place = cast_to(node, place, DType::I64)?;
    let zero = node.scalar_like(place, 0.0)?;
    let is_behind = node.apply("less", &[place, zero])?;
    let count = node.known(&Known::scalar(DType::I64, count))?;
    let from_the_end = node.apply("add", &[place, count])?;
    node.apply("where", &[is_behind, from_the_end, place])
}

/// An element more, at the end or at the place that input 2 says.
pub(super) fn insert(node: &mut Node<'_>, rows: Value) -> Outputs {
    let element = node.input(1)?;
    check_element(node, rows, element, 0)?;
    let row = row_of(node, element)?;
    let count = node.dims(rows)?[0];
    let all = joined(node, &[rows, row], 0)?;
    let Some(place) = place(node, 2, (count, true))? else { return Ok(vec![of_rows(node, all)?]) };
    // Rows in front of it stay where they are, and those behind it come one later; the new one stands last.
    let places = places_along(node, node.cx().dim_add(count, node.cx().dim(1)))?;
    let is_behind = node.apply("greater", &[places, place])?;
    let is_behind = cast_to(node, is_behind, DType::I64)?;
    let old = node.apply("subtract", &[places, is_behind])?;
    let is_new = node.apply("equal", &[places, place])?;
    let last = node.known(&Known::scalar(DType::I64, count))?;
    let from = node.apply("where", &[is_new, last, old])?;
    let all = node.call("take", &[all, from], &[("axis", 0.into())])?;
    Ok(vec![of_rows(node, all)?])
}

/// An element less, the last one or that at the place that input 1 says. Of an empty sequence an empty one is left.
pub(super) fn erase(node: &mut Node<'_>, rows: Value) -> Outputs {
    let count = node.dims(rows)?[0];
    let rest = not_below_zero(node, node.cx().dim_sub(count, node.cx().dim(1)));
    let mut places = places_along(node, rest)?;
    if let Some(place) = place(node, 1, (count, false))? {
        let is_behind = node.apply("greater_equal", &[places, place])?;
        let is_behind = cast_to(node, is_behind, DType::I64)?;
        places = node.apply("add", &[places, is_behind])?;
    }
    let rest = node.call("take", &[rows, places], &[("axis", 0.into())])?;
    Ok(vec![of_rows(node, rest)?])
}

/// The element at the place that input 1 says.
pub(super) fn at(node: &mut Node<'_>, rows: Value) -> Outputs {
    let count = node.dims(rows)?[0];
    match place(node, 1, (count, false))? {
        Some(place) => Ok(vec![node.call("take", &[rows, place], &[("axis", 0.into())])?]),
        None => invalid("it says no place"),
    }
}

/// The elements one behind the other along an axis, or along a new one.
pub(super) fn concatenate(node: &mut Node<'_>, rows: Value, axis: usize, is_new: bool) -> Outputs {
    let moved = with_rows_at(node, rows, axis)?;
    if is_new {
        return Ok(vec![moved]);
    }
    let mut dims = node.dims(moved)?;
    let count = dims.remove(axis);
    dims[axis] = node.cx().dim_mul(count, dims[axis]);
    Ok(vec![reshape_to(node, moved, &dims)?])
}

/// A tensor whose first axis is moved to where `axis` is.
fn with_rows_at(node: &mut Node<'_>, rows: Value, axis: usize) -> Result<Value, Problem> {
    if axis == 0 {
        return Ok(rows);
    }
    let rank = node.dims(rows)?.len() as i64;
    let mut axes: Vec<i64> = (1..rank).collect();
    axes.insert(axis, 0);
    node.call("transpose", &[rows], &[("axes", axes.into())])
}

/// The parts of a tensor along an axis, each of `length` of its elements; without the axis where `drops` it, which one of length 1 may.
/// A call whose last part would be shorter is refused: the parts are rows of one tensor.
pub(super) fn split(
    node: &mut Node<'_>,
    x: Value,
    (axis, length): (usize, Dim),
    drops: bool,
) -> Outputs {
    let mut dims = node.dims(x)?;
    // None is as long as nothing.
    let least = node.cx().dim_max(length, node.cx().dim(1));
    dims[axis] = node.cx().dim_floor_div(dims[axis], least);
    if !drops {
        dims.insert(axis + 1, length);
    }
    let parts = reshape_to(node, x, &dims)?;
    let mut axes: Vec<i64> = (0..dims.len() as i64).collect();
    let counted = axes.remove(axis);
    axes.insert(0, counted);
    let rows = match axis {
        0 => parts,
        _ => node.call("transpose", &[parts], &[("axes", axes.into())])?,
    };
    Ok(vec![of_rows(node, rows)?])
}

/// The rows of a sequence, which the importer asks for.
#[rule(import.onnx, domain = "tenon", key = "SequenceRows")]
fn rows(node: &mut Node<'_>) -> Outputs {
    let sequence = Sequence::of(node, 0)?;
    Ok(vec![rows_of(node, sequence)?])
}

/// A tensor without rows, of an element and the dimensions of a row.
#[rule(import.onnx, domain = "tenon", key = "SequenceNoRows")]
fn no_rows(node: &mut Node<'_>) -> Outputs {
    let (element, mut dims) = (node.input(0)?, node.input_dims(1)?);
    dims.insert(0, node.cx().dim(0));
    let shape = node.shape(&dims)?;
    Ok(vec![node.call("broadcast_to", &[element, shape], &[])?])
}

/// The sequence of the rows of a tensor.
#[rule(import.onnx, domain = "tenon", key = "SequenceOfRows")]
fn sequence_of_rows(node: &mut Node<'_>) -> Outputs {
    let rows = node.input(0)?;
    Ok(vec![of_rows(node, rows)?])
}

/// A sequence with what all trips of a loop put behind it: for each trip the rows of a tensor.
#[rule(import.onnx, domain = "tenon", key = "SequenceOfTrips")]
fn sequence_of_trips(node: &mut Node<'_>) -> Outputs {
    let (before, trips) = (Sequence::of(node, 0)?, node.input(1)?);
    let mut dims = node.dims(trips)?;
    let count = dims.remove(0);
    dims[0] = node.cx().dim_mul(count, dims[0]);
    let mut rows = reshape_to(node, trips, &dims)?;
    if !matches!(&before, Sequence::Known(elements) if elements.is_empty()) {
        let before = rows_of(node, before)?;
        check_element(node, before, rows, 1)?;
        rows = joined(node, &[before, rows], 0)?;
    }
    Ok(vec![of_rows(node, rows)?])
}
