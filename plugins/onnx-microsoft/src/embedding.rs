//! The sum of embeddings that a transformer begins with.

use tenon_plugin_api::rule::prelude::*;

use crate::normalizations::layer_norm;
use crate::quantized::{less_zero, spread};
use crate::steps::{cast_to, places, reshape_to};

const WORDS: usize = 2;
const POSITIONS: usize = 3;
const SEGMENTS: usize = 4;
const GAMMA: usize = 5;
const BETA: usize = 6;
const MASK: usize = 7;
/// Where scales of bytes begin, one for each of the tables from [`WORDS`] on; then their zero points.
const SCALES: usize = 8;
const ZEROS: usize = 13;

/// `EmbedLayerNormalization`: embeddings of words, positions and segments, normalized; the second output counts what a mask leaves,
/// the third is the sum.
#[rule(import.onnx, domain = "com.microsoft", key = "EmbedLayerNormalization")]
fn embed_layer_norm(node: &mut Node<'_>) -> Outputs {
    let places = node.optional(8);
    embedded(node, places, false)
}

/// `QEmbedLayerNormalization`: the same of tables of bytes on scales.
#[rule(import.onnx, domain = "com.microsoft", key = "QEmbedLayerNormalization")]
fn quantized_embed_layer_norm(node: &mut Node<'_>) -> Outputs {
    embedded(node, None, true)
}

/// A table, or the rows of it that are asked for, as numbers.
fn table(
    node: &mut Node<'_>,
    index: usize,
    rows: Option<Value>,
    is_quantized: bool,
) -> Result<Value, Problem> {
    let mut table = node.input(index)?;
    if let Some(rows) = rows {
        table = node.apply("take", &[table, rows])?;
    }
    if !is_quantized {
        return Ok(table);
    }
    let scale = spread(node, SCALES + index - WORDS)?;
    let moved = less_zero(node, table, ZEROS + index - WORDS)?;
    let moved = cast_to(node, moved, DType::F32)?;
    node.apply("multiply", &[moved, scale])
}

fn embedded(node: &mut Node<'_>, given: Option<Value>, is_quantized: bool) -> Outputs {
    let ids = node.input(0)?;
    let &[batch, sequence] = node.dims(ids)?.as_slice() else {
        return invalid("its words have two dimensions");
    };
    let words = table(node, WORDS, Some(ids), is_quantized)?;
    let at = match given {
        Some(positions) => positions,
        None => {
            let at = places(node, sequence)?;
            let one = node.cx().dim(1);
            reshape_to(node, at, &[one, sequence])?
        }
    };
    let position = table(node, POSITIONS, Some(at), is_quantized)?;
    let mut sum = node.apply("add", &[words, position])?;
    if let (Some(segments), Some(_)) = (node.optional(1), node.optional(SEGMENTS)) {
        let segment = table(node, SEGMENTS, Some(segments), is_quantized)?;
        sum = node.apply("add", &[sum, segment])?;
    }
    let epsilon = node.float_or("epsilon", 1e-12)?;
    let gamma = table(node, GAMMA, None, is_quantized)?;
    let beta = table(node, BETA, None, is_quantized)?;
    let y = layer_norm(node, sum, gamma, Some(beta), epsilon)?;
    node.ignore("mask_index_type");
    if node.output_count() < 2 {
        return Ok(vec![y]);
    }
    let count = match node.optional(MASK) {
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
