//! What is above a threshold: `Binarizer`.
//!
//! ```text
//! y = x > threshold ? 1 : 0
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

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
