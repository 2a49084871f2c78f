//! Numbers that trees tell: `TreeEnsembleRegressor`.
//!
//! ```text
//! y[n, k] = transform(base[k] + sum of what the leaves of row n give to target k)
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

use super::attributes::floats_or_tensor;
use super::post_transform::{post_transform, transformed};
use super::tree_nodes;

/// `TreeEnsembleRegressor`.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "TreeEnsembleRegressor", since = 1)]
fn regressor(node: &mut Node<'_>) -> Outputs {
    let targets = node.int_or("n_targets", 1)?;
    let mut forest = tree_nodes::forest(node, "target", targets)?;
    forest.base = floats_or_tensor(node, "base_values")?;
    let aggregate = node.text("aggregate_function", "SUM")?;
    let transform = post_transform(node)?;
    let (x, dtype) = tree_nodes::rows(node)?;
    let leaves = forest.leaves(node, x, dtype)?;
    let scores = forest.gathered(node, leaves, dtype, &aggregate)?;
    let y = transformed(node, scores, transform)?;
    Ok(vec![cast_to(node, y, DType::F32)?])
}
