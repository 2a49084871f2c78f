//! Columns that are chosen: `ArrayFeatureExtractor`.
//!
//! ```text
//! y[n, i] = x[n, indices[i]]
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{product, reshape_to};

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
