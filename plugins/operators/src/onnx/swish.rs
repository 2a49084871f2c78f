//! An element times its sigmoid.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::scaled;

/// `Swish`: x * sigmoid(alpha * x).
#[rule(import.onnx, key = "Swish", since = 24)]
fn swish(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let alpha = node.float_or("alpha", 1.0)?;
    if alpha == 1.0 {
        return Ok(vec![node.apply("nn.silu", &[x])?]);
    }
    let inner = scaled(node, x, alpha)?;
    let sigmoid = node.apply("sigmoid", &[inner])?;
    Ok(vec![node.apply("multiply", &[x, sigmoid])?])
}
