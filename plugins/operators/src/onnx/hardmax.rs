//! One at the largest element along an axis.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{product, reshape_to};

/// `Hardmax`.
#[rule(import.onnx, key = "Hardmax", since = 13)]
fn hardmax(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let axis = node.int_or("axis", -1)?;
    Ok(vec![largest(node, x, axis)?])
}

/// `Hardmax` along the rows of the matrix that the tensor is when it is flattened at the axis.
#[rule(import.onnx, key = "Hardmax", since = 1, until = 12)]
fn hardmax_of_matrix(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let axis = node.int_or("axis", 1)?;
    let axis = if axis == dims.len() as i64 { dims.len() } else { node.axis(axis, dims.len())? };
    let matrix = [product(node, &dims[..axis]), product(node, &dims[axis..])];
    let matrix = reshape_to(node, x, &matrix)?;
    let y = largest(node, matrix, -1)?;
    Ok(vec![reshape_to(node, y, &dims)?])
}

/// Ones put into zeros where the largest elements are, the first of equal ones.
fn largest(node: &mut Node<'_>, x: Value, axis: i64) -> Result<Value, Problem> {
    let (dtype, dims) = (node.dtype(x)?, node.dims(x)?);
    let at = node.axis(axis, dims.len())?;
    let attrs = [("axis", axis.into()), ("keepdims", true.into())];
    let places = node.call("argmax", &[x], &attrs)?;
    let mut one_each = dims.clone();
    one_each[at] = node.cx().dim(1);
    let [zeros, ones] = [(0.0, &dims), (1.0, &one_each)].map(|(value, dims)| {
        let shape = node.shape(dims)?;
        let attrs = [("value", value.into()), ("dtype", dtype.to_string().into())];
        node.call("full", &[shape], &attrs)
    });
    node.call("scatter_elements", &[zeros?, places, ones?], &[("axis", axis.into())])
}
