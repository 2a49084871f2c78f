//! A smooth form of the larger of x and 0, and what is made of it.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::shifted;

/// `Softplus`.
#[rule(import.onnx, key = "Softplus", since = 1)]
fn softplus(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    Ok(vec![softplus_of(node, x)?])
}

/// `Mish`: x * tanh(softplus(x)).
#[rule(import.onnx, key = "Mish", since = 18)]
fn mish(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let inner = softplus_of(node, x)?;
    let tanh = node.apply("tanh", &[inner])?;
    Ok(vec![node.apply("multiply", &[x, tanh])?])
}

/// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
fn softplus_of(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    let above = node.apply("nn.relu", &[x])?;
    let inner = node.apply("abs", &[x])?;
    let inner = node.apply("negative", &[inner])?;
    let inner = node.apply("exp", &[inner])?;
    let inner = shifted(node, inner, 1.0)?;
    let inner = node.apply("log", &[inner])?;
    node.apply("add", &[above, inner])
}
