//! Convolutions of integers that stand for numbers on a scale.
//!
//! ```text
//! ConvInteger(x, w, zx, zw)    conv(i32(x) - zx, i32(w) - zw)
//! QLinearConv(x, sx, zx, …)    the same with a bias, on the scale of the result
//! ```
//!
//! What lies beyond the data is their zero point, which is zero where that is subtracted.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::integer_matmul::requantized;
use crate::onnx::steps::{cast_to, reshape_to};
use crate::product::conv2d::convolved;

/// `ConvInteger`.
#[rule(import.onnx, key = "ConvInteger", since = 10)]
fn conv_integer(node: &mut Node<'_>) -> Outputs {
    let (x, w) = (moved(node, 0, 2)?, moved_weights(node, 1, 3)?);
    Ok(vec![convolved(node, x, w, None)?])
}

/// `QLinearConv`: its bias is on the product of the scales of data and weights.
#[rule(import.onnx, key = "QLinearConv", since = 10)]
fn quantized_conv(node: &mut Node<'_>) -> Outputs {
    let (x, w, bias) = (moved(node, 0, 2)?, moved_weights(node, 3, 5)?, node.optional(8));
    let rank = node.dims(x)?.len();
    let sums = convolved(node, x, w, bias)?;
    let of_x = scalar(node, 1)?;
    let scale = node.input(4)?;
    let of_w = spread(node, scale, rank - 1)?;
    let on = [scalar(node, 6)?, scalar(node, 7)?];
    Ok(vec![requantized(node, sums, [of_x, of_w], on)?])
}

/// Data as i32, less their zero point.
fn moved(node: &mut Node<'_>, index: usize, zero: usize) -> Result<Value, Problem> {
    let x = node.input(index)?;
    let x = cast_to(node, x, DType::I32)?;
    if node.optional(zero).is_none() {
        return Ok(x);
    }
    let zero = scalar(node, zero)?;
    let zero = cast_to(node, zero, DType::I32)?;
    node.apply("subtract", &[x, zero])
}

/// Weights as i32, less their zero point, which may be one for each channel of the result.
fn moved_weights(node: &mut Node<'_>, index: usize, zero: usize) -> Result<Value, Problem> {
    let w = node.input(index)?;
    let rank = node.dims(w)?.len();
    let w = cast_to(node, w, DType::I32)?;
    let Some(zero) = node.optional(zero) else { return Ok(w) };
    let zero = spread(node, zero, rank)?;
    let zero = cast_to(node, zero, DType::I32)?;
    node.apply("subtract", &[w, zero])
}

/// An input of one element without dimensions.
fn scalar(node: &mut Node<'_>, index: usize) -> Result<Value, Problem> {
    let value = node.input(index)?;
    reshape_to(node, value, &[])
}

/// One number for all, or one for each channel of the result, with as many axes as there are from the channels on.
fn spread(node: &mut Node<'_>, value: Value, axes: usize) -> Result<Value, Problem> {
    let one = node.cx().dim(1);
    match *node.dims(value)?.as_slice() {
        [] => Ok(value),
        [count] if count == one => reshape_to(node, value, &[]),
        [count] => {
            let mut shape = vec![count];
            shape.resize(axes, one);
            reshape_to(node, value, &shape)
        }
        _ => invalid("one number for each channel is expected"),
    }
}
