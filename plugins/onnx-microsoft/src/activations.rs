//! Activations that are one node after ONNX Runtime's optimizer.

use tenon_plugin_api::rule::prelude::*;

use crate::steps::{cast_to, plus_input, scaled, wide};

/// `Gelu`: x times the part of a normal distribution below x.
#[rule(import.onnx, domain = "com.microsoft", key = "Gelu")]
fn gelu(node: &mut Node<'_>) -> Outputs {
    node.same("nn.gelu")
}

/// `BiasGelu`: the same of a sum.
#[rule(import.onnx, domain = "com.microsoft", key = "BiasGelu")]
fn bias_gelu(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    node.input(1)?;
    let x = plus_input(node, x, 1)?;
    Ok(vec![node.apply("nn.gelu", &[x])?])
}

/// `FastGelu`: the approximation with a hyperbolic tangent, of a sum where there is a bias.
#[rule(import.onnx, domain = "com.microsoft", key = "FastGelu")]
fn fast_gelu(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let x = plus_input(node, x, 1)?;
    let dtype = node.dtype(x)?;
    let x = cast_to(node, x, wide(dtype))?;
    let square = node.apply("multiply", &[x, x])?;
    let part = scaled(node, square, 0.044715)?;
    let one = node.scalar_like(x, 1.0)?;
    let part = node.apply("add", &[part, one])?;
    let part = node.apply("multiply", &[x, part])?;
    let part = scaled(node, part, (2.0 / std::f64::consts::PI).sqrt())?;
    let part = node.apply("tanh", &[part])?;
    let part = node.apply("add", &[part, one])?;
    let half = scaled(node, x, 0.5)?;
    let y = node.apply("multiply", &[half, part])?;
    Ok(vec![cast_to(node, y, dtype)?])
}

/// `QuickGelu`: x times the logistic function of alpha x.
#[rule(import.onnx, domain = "com.microsoft", key = "QuickGelu")]
fn quick_gelu(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let alpha = node.float_or("alpha", 1.702)?;
    let x = cast_to(node, x, wide(dtype))?;
    let inner = scaled(node, x, alpha)?;
    let part = node.apply("sigmoid", &[inner])?;
    let y = node.apply("multiply", &[x, part])?;
    Ok(vec![cast_to(node, y, dtype)?])
}

/// `BiasAdd`: a sum for each channel, which lies last, and one of everything.
#[rule(import.onnx, domain = "com.microsoft", key = "BiasAdd")]
fn bias_add(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let x = plus_input(node, x, 1)?;
    Ok(vec![plus_input(node, x, 2)?])
}

/// `BiasSplitGelu`: of a sum the first half times the function of the second one.
#[rule(import.onnx, domain = "com.microsoft", key = "BiasSplitGelu")]
fn bias_split_gelu(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let x = plus_input(node, x, 1)?;
    let halves = node.call("split", &[x], &[("sections", 2.into()), ("axis", (-1).into())])?;
    let halves = node.items(halves)?;
    let gate = node.apply("nn.gelu", &[halves[1]])?;
    Ok(vec![node.apply("multiply", &[halves[0], gate])?])
}
