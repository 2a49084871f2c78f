//! The sum of embeddings that a transformer begins with.

use tenon_plugin_api::rule::prelude::*;

use crate::normalizations::layer_norm;
use crate::steps::{cast_to, places, reshape_to};

/// `EmbedLayerNormalization`: embeddings of words, positions and segments, normalized; the second output counts what a mask leaves,
/// the third is the sum.
#[rule(import.onnx, domain = "com.microsoft", key = "EmbedLayerNormalization")]
fn embed_layer_norm(node: &mut Node<'_>) -> Outputs {
    let (ids, words, positions) = (node.input(0)?, node.input(2)?, node.input(3)?);
    let &[batch, sequence] = node.dims(ids)?.as_slice() else {
        return invalid("its words have two dimensions");
    };
    let mut sum = node.apply("take", &[words, ids])?;
    let at = match node.optional(8) {
        Some(positions) => positions,
        None => {
            let at = places(node, sequence)?;
            let one = node.cx().dim(1);
            reshape_to(node, at, &[one, sequence])?
        }
    };
    let position = node.apply("take", &[positions, at])?;
    sum = node.apply("add", &[sum, position])?;
    if let (Some(segments), Some(table)) = (node.optional(1), node.optional(4)) {
        let segment = node.apply("take", &[table, segments])?;
        sum = node.apply("add", &[sum, segment])?;
    }
    let (gamma, beta, epsilon) = (node.input(5)?, node.input(6)?, node.float_or("epsilon", 1e-12)?);
    let y = layer_norm(node, sum, gamma, Some(beta), epsilon)?;
    node.ignore("mask_index_type");
    if node.output_count() < 2 {
        return Ok(vec![y]);
    }
    let count = match node.optional(7) {
        Some(mask) => {
            let mask = cast_to(node, mask, DType::I32)?;
            let attrs = [("axis", vec![1].into()), ("keepdims", false.into())];
            node.call("sum", &[mask], &attrs)?
        }
        None => {
            let shape = node.shape(&[batch])?;
            node.call("full", &[shape], &[("value", 0.into()), ("dtype", "i32".into())])?
        }
    };
    Ok(vec![y, count, sum])
}
