//! 1 / x.

use tenon_plugin_api::rule::prelude::*;

/// `Reciprocal`.
#[rule(import.onnx, key = "Reciprocal", since = 6)]
fn reciprocal(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let one = node.scalar_like(x, 1.0)?;
    Ok(vec![node.apply("divide", &[one, x])?])
}
