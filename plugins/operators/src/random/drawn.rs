//! What the rules of ONNX that draw numbers have in common: shape, element type and seed.

use tenon_plugin_api::rule::prelude::*;

use super::seed::seed_of;

/// Numbers of an operator in the shape that the node says, f32 where it says no element type. `parameters` are attributes of the
/// node that are the operator's too, with what they are where they are not said.
pub(super) fn of_said_shape(
    node: &mut Node<'_>,
    op: &str,
    parameters: [(&'static str, f32); 2],
) -> Outputs {
    let Some(extents) = node.ints("shape")? else { return invalid("it has no `shape`") };
    if extents.iter().any(|&extent| extent < 0) {
        return invalid("a dimension of its shape is negative");
    }
    let dims: Vec<Dim> = extents.iter().map(|&extent| node.cx().dim(extent)).collect();
    drawn(node, op, parameters, (DType::F32, &dims))
}

/// The same in the shape of the node's input, of its element type where the node says none.
pub(super) fn like_input(
    node: &mut Node<'_>,
    op: &str,
    parameters: [(&'static str, f32); 2],
) -> Outputs {
    let x = node.input(0)?;
    let (dtype, dims) = (node.dtype(x)?, node.dims(x)?);
    drawn(node, op, parameters, (dtype, &dims))
}

fn drawn(
    node: &mut Node<'_>,
    op: &str,
    parameters: [(&'static str, f32); 2],
    (dtype, dims): (DType, &[Dim]),
) -> Outputs {
    let dtype = node.element_type("dtype")?.unwrap_or(dtype);
    let shape = node.shape(dims)?;
    let mut attrs = vec![("dtype", dtype.to_string().into())];
    for (name, default) in parameters {
        attrs.push((name, node.float_or(name, default)?.into()));
    }
    let seed = seed_of(node)?;
    Ok(vec![node.call(op, &[shape, seed], &attrs)?])
}
