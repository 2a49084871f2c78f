//! Parts of a tensor for which a condition holds.

use tenon_plugin_api::rule::prelude::*;

use super::first::places;
use crate::onnx::steps::{has_enough, product, reshape_to};

/// `Compress`: what stands along an axis, or in all of the tensor, at the places where a condition holds. A condition that is
/// shorter than the axis leaves out the rest.
#[rule(import.onnx, key = "Compress", since = 9)]
fn import(node: &mut Node<'_>) -> Outputs {
    let (mut x, condition) = (node.input(0)?, node.input(1)?);
    let dims = node.dims(x)?;
    let axis = match node.int("axis")? {
        Some(axis) => node.axis(axis, dims.len())?,
        None => {
            let all = product(node, &dims);
            x = reshape_to(node, x, &[all])?;
            0
        }
    };
    let &[length] = node.dims(condition)?.as_slice() else {
        return invalid("its condition has not one dimension");
    };
    let x = has_enough(node, x, axis, length)?;
    let (places, _) = places(node, condition)?;
    Ok(vec![node.call("take", &[x, places], &[("axis", (axis as i64).into())])?])
}
