//! -1, 0 or 1.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

/// `Sign`: one minus the other of two comparisons with zero; what is no number stays so.
#[rule(import.onnx, key = "Sign", since = 9)]
fn sign(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let zero = node.scalar_like(x, 0.0)?;
    let above = node.apply("greater", &[x, zero])?;
    let above = cast_to(node, above, dtype)?;
    let below = node.apply("less", &[x, zero])?;
    let below = cast_to(node, below, dtype)?;
    let sign = node.apply("subtract", &[above, below])?;
    if !dtype.is_float() {
        return Ok(vec![sign]);
    }
    let is_nan = node.apply("not_equal", &[x, x])?;
    Ok(vec![node.apply("where", &[is_nan, x, sign])?])
}
