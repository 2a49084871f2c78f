//! What control flow needs of operators: the importer makes it, and asks rules for these.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, reshape_to};

/// A tensor of one element, in any number of dimensions, without dimensions.
#[rule(import.onnx, domain = "tenon", key = "Scalar")]
fn scalar(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let is_one = |dim: &Dim| node.terms().dim_value(*dim) == Some(1);
    if !dims.iter().all(is_one) {
        let ty = node.terms().type_text(node.ty(x));
        return unsupported(format!("{ty} where one element is expected"));
    }
    if let Some(known) = node.elements(x)
        && let [element] = known.elements[..]
    {
        return Ok(vec![node.known(&Known::scalar(known.dtype, element))?]);
    }
    let shape = node.shape(&[])?;
    Ok(vec![node.call("reshape", &[x, shape], &[])?])
}

/// A tensor of unknown rank with the extents that it has.
#[rule(import.onnx, domain = "tenon", key = "Shaped")]
fn shaped(node: &mut Node<'_>) -> Outputs {
    let (x, dims) = (node.input(0)?, node.input_dims(1)?);
    let shape = node.shape(&dims)?;
    Ok(vec![node.apply("reshape", &[x, shape])?])
}

/// The number behind another one.
#[rule(import.onnx, domain = "tenon", key = "Next")]
fn next(node: &mut Node<'_>) -> Outputs {
    let number = node.input(0)?;
    let one = node.scalar_like(number, 1.0)?;
    Ok(vec![node.apply("add", &[number, one])?])
}

/// The row of a trip: of a tensor, the number of the trip, the axis of the rows, and whether the last one comes first.
#[rule(import.onnx, domain = "tenon", key = "Row")]
fn row(node: &mut Node<'_>) -> Outputs {
    let (x, trip) = (node.input(0)?, node.input(1)?);
    let (axis, is_reversed) = axis_and_direction(node, 2)?;
    let mut place = trip;
    if is_reversed {
        let extent = node.dims(x)?[axis as usize];
        place = backwards(node, extent, trip)?;
    }
    Ok(vec![node.call("take", &[x, place], &[("axis", axis.into())])?])
}

/// Rows, which stand along the first axis, along another one, or the last one first.
#[rule(import.onnx, domain = "tenon", key = "Rows")]
fn rows(node: &mut Node<'_>) -> Outputs {
    let mut x = node.input(0)?;
    let (axis, is_reversed) = axis_and_direction(node, 1)?;
    if is_reversed {
        let count = node.dims(x)?[0];
        let shape = node.shape(&[count])?;
        let places = node.call("arange", &[shape], &[])?;
        let places = backwards(node, count, places)?;
        x = node.call("take", &[x, places], &[("axis", 0.into())])?;
    }
    if axis != 0 {
        let rank = node.dims(x)?.len() as i64;
        let mut axes: Vec<i64> = (1..rank).collect();
        axes.insert(axis as usize, 0);
        let axes = AttrValue::from(node.cx().int_list(&axes));
        x = node.call("transpose", &[x], &[("axes", axes)])?;
    }
    Ok(vec![x])
}

/// The number of a case, 0 where there is none: of inputs, each with rows of values, one of which is the input's, and the number
/// that each row means.
#[rule(import.onnx, domain = "tenon", key = "Case")]
fn case(node: &mut Node<'_>) -> Outputs {
    let inputs = node.all_inputs()?;
    let Some((&numbers, pairs)) = inputs.split_last() else { return invalid("it has no cases") };
    let rows = node.dims(numbers)?[0];
    let mut found = numbers;
    for pair in pairs.chunks_exact(2) {
        let (x, table) = (pair[0], pair[1]);
        let count = node.dims(table)?[1];
        let x = reshape_to(node, x, &[node.cx().dim(1), count])?;
        let is_same = node.apply("equal", &[x, table])?;
        let is_same = cast_to(node, is_same, DType::I64)?;
        let attrs = [("axis", vec![1].into()), ("keepdims", false.into())];
        let is_same = node.call("min", &[is_same], &attrs)?;
        let is_same = reshape_to(node, is_same, &[rows])?;
        found = node.apply("multiply", &[found, is_same])?;
    }
    let attrs = [("axis", vec![0].into()), ("keepdims", false.into())];
    Ok(vec![node.call("max", &[found], &attrs)?])
}

/// Whether the first number is not below the second.
#[rule(import.onnx, domain = "tenon", key = "AtLeast")]
fn at_least(node: &mut Node<'_>) -> Outputs {
    node.same("greater_equal")
}

/// Places among `count` counted from the last one.
fn backwards(node: &mut Node<'_>, count: Dim, places: Value) -> Result<Value, Problem> {
    let last = node.cx().dim_sub(count, node.cx().dim(1));
    let last = node.known(&Known::scalar(DType::I64, last))?;
    node.call("subtract", &[last, places], &[])
}

fn axis_and_direction(node: &Node<'_>, first: usize) -> Result<(i64, bool), Problem> {
    match (&node.input_ints(first)?[..], &node.input_ints(first + 1)?[..]) {
        (&[axis], &[direction]) => Ok((axis, direction != 0)),
        _ => invalid("one axis and one direction are expected"),
    }
}
