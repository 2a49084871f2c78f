//! x / (1 + |x|).

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::shifted;

/// `Softsign`: x / (1 + |x|).
#[rule(import.onnx, key = "Softsign", since = 1)]
fn softsign(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let below = node.apply("abs", &[x])?;
    let below = shifted(node, below, 1.0)?;
    Ok(vec![node.apply("divide", &[x, below])?])
}
