//! Normalizations with what comes before them.

use tenon_plugin_api::rule::prelude::*;

use crate::steps::{cast_to, plus_input, wide};

/// `SkipLayerNormalization`: layer normalization of the sum of two tensors and a bias; the sum is the fourth output.
#[rule(import.onnx, domain = "com.microsoft", key = "SkipLayerNormalization")]
fn skip_layer_norm(node: &mut Node<'_>) -> Outputs {
    let sum = sum(node, 4)?;
    let (gamma, beta, epsilon) =
        (node.input(2)?, node.optional(3), node.float_or("epsilon", 1e-12)?);
    let y = layer_norm(node, sum, gamma, beta, epsilon)?;
    if node.output_count() == 1 {
        return Ok(vec![y]);
    }
    let wide_sum = widened(node, sum)?;
    let mean = mean(node, wide_sum)?;
    let centered = node.apply("subtract", &[wide_sum, mean])?;
    let inverse = inverse_root(node, centered, epsilon)?;
    let [mean, inverse] = [mean, inverse].map(|value| cast_to(node, value, DType::F32));
    Ok(vec![y, mean?, inverse?, sum])
}

/// `SkipSimplifiedLayerNormalization`: the same without a mean.
#[rule(import.onnx, domain = "com.microsoft", key = "SkipSimplifiedLayerNormalization")]
fn skip_rms_norm(node: &mut Node<'_>) -> Outputs {
    let sum = sum(node, 3)?;
    let (gamma, epsilon) = (node.input(2)?, node.float_or("epsilon", 1e-12)?);
    let y = rms_norm(node, sum, gamma, epsilon)?;
    if node.output_count() == 1 {
        return Ok(vec![y]);
    }
    let wide_sum = widened(node, sum)?;
    let inverse = inverse_root(node, wide_sum, epsilon)?;
    // There is no mean, which is told as 0.
    let shape = node.dims(inverse)?;
    let shape = node.shape(&shape)?;
    let mean = node.call("full", &[shape], &[("value", 0.0.into()), ("dtype", "f32".into())])?;
    Ok(vec![y, mean, cast_to(node, inverse, DType::F32)?, sum])
}

/// `SimplifiedLayerNormalization`, which ONNX Runtime has in the standard's own domain.
#[rule(import.onnx, key = "SimplifiedLayerNormalization")]
fn simplified(node: &mut Node<'_>) -> Outputs {
    let rank = node.dims(node.input(0)?)?.len() as i64;
    if ![-1, rank - 1].contains(&node.int_or("axis", -1)?) {
        return unsupported("another axis than the last one");
    }
    node.ignore("stash_type");
    let (x, gamma, epsilon) = (node.input(0)?, node.input(1)?, node.float_or("epsilon", 1e-5)?);
    let y = rms_norm(node, x, gamma, epsilon)?;
    let x = widened(node, x)?;
    let inverse = inverse_root(node, x, epsilon)?;
    Ok(vec![y, cast_to(node, inverse, DType::F32)?])
}

/// The sum of the first two inputs and a bias.
fn sum(node: &mut Node<'_>, bias: usize) -> Result<Value, Problem> {
    let x = node.input(0)?;
    node.input(1)?;
    let x = plus_input(node, x, 1)?;
    plus_input(node, x, bias)
}

/// A tensor in the type that statistics are made in.
fn widened(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    let dtype = node.dtype(x)?;
    cast_to(node, x, wide(dtype))
}

/// The mean along the last axis, which stays.
fn mean(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    node.call("mean", &[x], &[("axis", vec![-1].into()), ("keepdims", true.into())])
}

/// 1 over the root of the mean of the squares along the last axis, which stays.
fn inverse_root(node: &mut Node<'_>, x: Value, epsilon: f64) -> Result<Value, Problem> {
    let square = node.apply("multiply", &[x, x])?;
    let mean = mean(node, square)?;
    let epsilon = node.scalar_like(mean, epsilon)?;
    let mean = node.apply("add", &[mean, epsilon])?;
    node.apply("rsqrt", &[mean])
}

/// Layer normalization along the last axis.
pub(crate) fn layer_norm(
    node: &mut Node<'_>,
    x: Value,
    gamma: Value,
    beta: Option<Value>,
    epsilon: f64,
) -> Result<Value, Problem> {
    let beta = match beta {
        Some(beta) => beta,
        None => {
            let zero = node.scalar_like(gamma, 0.0)?;
            node.apply("multiply", &[gamma, zero])?
        }
    };
    node.call("nn.layer_norm", &[x, gamma, beta], &[("epsilon", epsilon.into())])
}

/// x over the root of the mean of its squares along the last axis, times gamma.
pub(crate) fn rms_norm(
    node: &mut Node<'_>,
    x: Value,
    gamma: Value,
    epsilon: f64,
) -> Result<Value, Problem> {
    let dtype = node.dtype(x)?;
    let wide_x = widened(node, x)?;
    let factor = inverse_root(node, wide_x, epsilon)?;
    let y = node.apply("multiply", &[wide_x, factor])?;
    let gamma = cast_to(node, gamma, wide(dtype))?;
    let y = node.apply("multiply", &[y, gamma])?;
    cast_to(node, y, dtype)
}
