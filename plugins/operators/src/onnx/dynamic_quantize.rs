//! Quantization on a scale that the data say.

use tenon_plugin_api::rule::prelude::*;

use super::reduce::{Axes, reduce};
use crate::onnx::steps::cast_to;

/// The largest quantized number; the smallest one is zero.
const LARGEST: f64 = u8::MAX as f64;

/// `DynamicQuantizeLinear`: to u8, on the scale from the least element to the largest one, zero among them.
#[rule(import.onnx, key = "DynamicQuantizeLinear", since = 11)]
fn dynamic_quantize(node: &mut Node<'_>) -> Outputs {
    node.check_arity(1, 1)?;
    let x = node.input(0)?;
    let all = Axes { axes: Vec::new(), keepdims: false, is_noop: false };
    let zero = node.scalar_like(x, 0.0)?;
    let top = reduce(node, "max", x, &all)?;
    let top = node.apply("maximum", &[top, zero])?;
    let bottom = reduce(node, "min", x, &all)?;
    let bottom = node.apply("minimum", &[bottom, zero])?;

    let scale = scale(node, top, bottom)?;
    let below = node.apply("divide", &[bottom, scale])?;
    let zero_point = node.apply("subtract", &[zero, below])?;
    let zero_point = in_range(node, zero_point)?;
    let zero_point = node.apply("round", &[zero_point])?;

    let y = node.apply("divide", &[x, scale])?;
    let y = node.apply("round", &[y])?;
    let y = node.apply("add", &[y, zero_point])?;
    let y = in_range(node, y)?;
    Ok(vec![cast_to(node, y, DType::U8)?, scale, cast_to(node, zero_point, DType::U8)?])
}

/// The distance of two quantized numbers; 1 where all elements are zero.
fn scale(node: &mut Node<'_>, top: Value, bottom: Value) -> Result<Value, Problem> {
    let largest = node.scalar_like(top, LARGEST)?;
    let range = node.apply("subtract", &[top, bottom])?;
    let scale = node.apply("divide", &[range, largest])?;
    // The difference of two finite numbers need not be one.
    let limit = node.scalar_like(top, f64::INFINITY)?;
    let is_beyond = node.apply("equal", &[range, limit])?;
    let parts = [node.apply("divide", &[top, largest])?, node.apply("divide", &[bottom, largest])?];
    let apart = node.apply("subtract", &parts)?;
    let scale = node.apply("where", &[is_beyond, apart, scale])?;
    let zero = node.scalar_like(top, 0.0)?;
    let is_nothing = node.apply("equal", &[range, zero])?;
    let one = node.scalar_like(top, 1.0)?;
    node.apply("where", &[is_nothing, one, scale])
}

fn in_range(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    node.call("clip", &[x], &[("min", 0.0.into()), ("max", LARGEST.into())])
}
