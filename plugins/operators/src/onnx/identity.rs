//! A value under another name.

use tenon_plugin_api::rule::prelude::*;

/// `Identity`.
#[rule(import.onnx, key = "Identity", since = 1)]
fn identity(node: &mut Node<'_>) -> Outputs {
    Ok(vec![node.input(0)?])
}
