//! Operators of `ai.onnx.ml` that are put together from ours.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, product, reshape_to};

/// `Binarizer`: one above the threshold, zero elsewhere.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "Binarizer", since = 1)]
fn binarizer(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let threshold = node.float_or("threshold", 0.0)?;
    let dtype = node.dtype(x)?;
    let threshold = node.scalar_like(x, threshold)?;
    let is_above = node.apply("greater", &[x, threshold])?;
    Ok(vec![cast_to(node, is_above, dtype)?])
}

/// `ArrayFeatureExtractor`: elements along the last axis. Of a vector it makes a matrix of one row.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "ArrayFeatureExtractor", since = 1)]
fn feature_extractor(node: &mut Node<'_>) -> Outputs {
    let (x, indices) = (node.input(0)?, node.input(1)?);
    let dims = node.dims(indices)?;
    let count = product(node, &dims);
    let indices = reshape_to(node, indices, &[count])?;
    let y = node.call("take", &[x, indices], &[("axis", (-1).into())])?;
    match node.dims(x)?.len() {
        1 => Ok(vec![node.call("expand_dims", &[y], &[("axis", vec![0].into())])?]),
        _ => Ok(vec![y]),
    }
}
