//! What works along one axis, or before version 13 along the rows of a matrix.

use tenon_plugin_api::rule::prelude::*;

use super::steps::{product, reshape_to};

pub(crate) fn along_axis(node: &mut Node<'_>, op: &'static str) -> Outputs {
    let x = node.input(0)?;
    let axis = node.int_or("axis", -1)?;
    Ok(vec![node.call(op, &[x], &[("axis", axis.into())])?])
}

/// Along the rows of the matrix that the tensor is when it is flattened at the axis. Where all axes from
/// there on but one have extent 1, that is along this one.
pub(crate) fn of_matrix(node: &mut Node<'_>, op: &'static str) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let axis = node.axis(node.int_or("axis", 1)?, dims.len())?;
    let is_long = |&axis: &usize| node.terms().dim_value(dims[axis]) != Some(1);
    let long: Vec<usize> = (axis..dims.len()).filter(is_long).collect();
    if let [] | [_] = long.as_slice() {
        let axis = long.first().copied().unwrap_or(axis) as i64;
        return Ok(vec![node.call(op, &[x], &[("axis", axis.into())])?]);
    }
    let matrix = [product(node, &dims[..axis]), product(node, &dims[axis..])];
    let matrix = reshape_to(node, x, &matrix)?;
    let y = node.call(op, &[matrix], &[("axis", (-1).into())])?;
    Ok(vec![reshape_to(node, y, &dims)?])
}
