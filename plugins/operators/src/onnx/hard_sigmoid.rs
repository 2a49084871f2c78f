//! A line in the place of a sigmoid.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{scaled, shifted};

/// `HardSigmoid`: alpha * x + beta, clipped to 0 and 1.
#[rule(import.onnx, key = "HardSigmoid", since = 6)]
fn hard_sigmoid(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let (alpha, beta) = (node.float_or("alpha", 0.2)?, node.float_or("beta", 0.5)?);
    Ok(vec![hard_sigmoid_of(node, x, alpha, beta)?])
}

/// `HardSwish`: x * hard_sigmoid(x).
#[rule(import.onnx, key = "HardSwish", since = 14)]
fn hard_swish(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let sigmoid = hard_sigmoid_of(node, x, 1.0 / 6.0, 0.5)?;
    Ok(vec![node.apply("multiply", &[x, sigmoid])?])
}

fn hard_sigmoid_of(node: &mut Node<'_>, x: Value, alpha: f64, beta: f64) -> Result<Value, Problem> {
    let line = scaled(node, x, alpha)?;
    let line = shifted(node, line, beta)?;
    node.call("clip", &[line], &[("min", 0.0.into()), ("max", 1.0.into())])
}
