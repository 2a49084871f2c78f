//! What is in a tensor, each once.

use tenon_plugin_api::rule::prelude::*;

use super::first::places;
use crate::onnx::steps::{cast_to, places_along, product, reshape_to, shifted};

/// `Unique`: the elements, or what stands along an axis, each once: in ascending order, or as they come. Then where the first of
/// each is, for each place which one it is, and how many of each there are.
#[rule(import.onnx, key = "Unique", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    let (x, is_sorted) = (node.input(0)?, node.flag("sorted", true)?);
    let dims = node.dims(x)?;
    let axis = match node.int("axis")? {
        Some(axis) => Some(node.axis(axis, dims.len())?),
        None => None,
    };
    let (rows, length) = rows_of(node, x, &dims, axis)?;
    let sorted = node.apply("row_order", &[rows])?;
    let [order, starts] = node.items(sorted)?[..] else { return invalid("rows have no order") };
    let starts_before = cast_to(node, starts, DType::I64)?;
    let group = node.apply("cumsum", &[starts_before])?;
    let group = shifted(node, group, -1.0)?;
    let (begins, count) = places(node, starts)?;
    let in_groups = node.apply("take", &[order, begins])?;
    let none = [filled(node, length, 0)?, filled(node, count, 0)?];
    let ones = filled(node, length, 1)?;
    let inverse = node.apply("scatter_elements", &[none[0], order, group])?;
    let add = [("reduction", "add".into())];
    let counts = node.call("scatter_elements", &[none[1], group, ones], &add)?;
    let mut all = [in_groups, inverse, counts];
    if !is_sorted {
        all = in_order_of_places(node, all, (count, none[1]))?;
    }
    let [indices, inverse, counts] = all;
    let unique = node.apply("take", &[rows, indices])?;
    let unique = as_it_was(node, unique, &dims, axis, count)?;
    Ok(vec![unique, indices, inverse, counts])
}

/// What is compared, as rows of a matrix, and how many there are.
fn rows_of(
    node: &mut Node<'_>,
    x: Value,
    dims: &[Dim],
    axis: Option<usize>,
) -> Result<(Value, Dim), Problem> {
    let Some(axis) = axis else {
        let (length, one) = (product(node, dims), node.cx().dim(1));
        return Ok((reshape_to(node, x, &[length, one])?, length));
    };
    let (length, rest) = (dims[axis], [&dims[..axis], &dims[axis + 1..]].concat());
    let front = moved(node, x, axis, 0, dims.len())?;
    let width = product(node, &rest);
    Ok((reshape_to(node, front, &[length, width])?, length))
}

/// Rows in the shape that they came from, with another number of them.
fn as_it_was(
    node: &mut Node<'_>,
    rows: Value,
    dims: &[Dim],
    axis: Option<usize>,
    count: Dim,
) -> Result<Value, Problem> {
    let Some(axis) = axis else { return reshape_to(node, rows, &[count]) };
    let shape = [&[count], &dims[..axis], &dims[axis + 1..]].concat();
    let rows = reshape_to(node, rows, &shape)?;
    moved(node, rows, 0, axis, dims.len())
}

/// A tensor with one axis brought to another place.
fn moved(
    node: &mut Node<'_>,
    x: Value,
    from: usize,
    to: usize,
    rank: usize,
) -> Result<Value, Problem> {
    if from == to {
        return Ok(x);
    }
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    let axis = axes.remove(from);
    axes.insert(to, axis);
    node.call("transpose", &[x], &[("axes", axes.into())])
}

/// As many integers of one value as a dimension says.
fn filled(node: &mut Node<'_>, count: Dim, value: i64) -> Result<Value, Problem> {
    let shape = node.shape(&[count])?;
    node.call("full", &[shape], &[("value", value.into()), ("dtype", "i64".into())])
}

/// Groups in the order in which the first of each comes.
fn in_order_of_places(
    node: &mut Node<'_>,
    [indices, inverse, counts]: [Value; 3],
    (count, none): (Dim, Value),
) -> Result<[Value; 3], Problem> {
    let shape = node.shape(&[count])?;
    let order = node.call("topk", &[indices, shape], &[("largest", false.into())])?;
    let [indices, order] = node.items(order)?[..] else { return invalid("it has no order") };
    let numbers = places_along(node, count)?;
    let number_of = node.apply("scatter_elements", &[none, order, numbers])?;
    let inverse = node.apply("take", &[number_of, inverse])?;
    Ok([indices, inverse, node.apply("take", &[counts, order])?])
}
