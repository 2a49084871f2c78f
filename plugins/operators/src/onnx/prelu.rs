//! A slope of its own below zero.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::below_zero;

/// `PRelu`: slope * x below zero.
#[rule(import.onnx, key = "PRelu", since = 7)]
fn prelu(node: &mut Node<'_>) -> Outputs {
    let (x, slope) = (node.input(0)?, node.input(1)?);
    let below = node.apply("multiply", &[slope, x])?;
    Ok(vec![below_zero(node, x, below)?])
}
