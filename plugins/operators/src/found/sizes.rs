//! Elements of a tensor as sizes that a call finds.

use tenon_plugin_api::rule::prelude::*;

use super::first::{bound, bound_open};
use crate::onnx::steps::{cast_to, reshape_to};

/// A tensor of few integers, whose elements the function goes on with as sizes; none may be below zero.
#[rule(import.onnx, domain = "tenon", key = "Found")]
fn found(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let dims = node.dims(x)?;
    let extents: Option<Vec<usize>> = dims
        .iter()
        .map(|&dim| node.terms().dim_value(dim).and_then(|dim| usize::try_from(dim).ok()))
        .collect();
    let Some(shape) = extents else {
        return unsupported("sizes of which it is not known how many they are");
    };
    let count = node.cx().dim(shape.iter().product::<usize>() as i64);
    let counts = cast_to(node, x, DType::I64)?;
    let counts = reshape_to(node, counts, &[count])?;
    let elements = bound_open(node, counts)?;
    Ok(vec![node.known(&Known { dtype, shape, elements })?])
}

/// Dimensions as symbols that stand for them.
#[rule(import.onnx, domain = "tenon", key = "Named")]
fn named(node: &mut Node<'_>) -> Outputs {
    let dims = node.input_dims(0)?;
    let names = names(node, &dims)?;
    Ok(vec![node.known(&Known::vector(names))?])
}

/// A symbol for each dimension, none of which may be below zero: what is made of it takes less to compute.
pub(crate) fn names(node: &mut Node<'_>, dims: &[Dim]) -> Result<Vec<Dim>, Problem> {
    let shape = node.shape(dims)?;
    let counts = node.apply("shape_to_tensor", &[shape])?;
    bound(node, counts, dims)
}
