//! Zero for what is near to it.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::shifted;

/// `ThresholdedRelu`: x above alpha, zero elsewhere.
#[rule(import.onnx, key = "ThresholdedRelu", since = 10)]
fn thresholded_relu(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let alpha = node.float_or("alpha", 1.0)?;
    let alpha = node.scalar_like(x, alpha)?;
    let zero = node.scalar_like(x, 0.0)?;
    let is_above = node.apply("greater", &[x, alpha])?;
    Ok(vec![node.apply("where", &[is_above, x, zero])?])
}

/// `Shrink`: nearer to zero by the bias where x is farther from it than lambd, zero elsewhere.
#[rule(import.onnx, key = "Shrink", since = 9)]
fn shrink(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let (bias, lambd) = (node.float_or("bias", 0.0)?, node.float_or("lambd", 0.5)?);
    let dtype = node.dtype(x)?;
    if !dtype.is_float() {
        return unsupported(format!("the element type {dtype}"));
    }
    let (zero, low, high) =
        (node.scalar_like(x, 0.0)?, node.scalar_like(x, -lambd)?, node.scalar_like(x, lambd)?);
    let (raised, lowered) = (shifted(node, x, bias)?, shifted(node, x, -bias)?);
    let is_high = node.apply("greater", &[x, high])?;
    let y = node.apply("where", &[is_high, lowered, zero])?;
    let is_low = node.apply("less", &[x, low])?;
    Ok(vec![node.apply("where", &[is_low, raised, y])?])
}
