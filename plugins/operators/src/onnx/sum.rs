//! Sums and means of any number of tensors.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::each_with_next;

/// `Sum` of any number of tensors.
#[rule(import.onnx, key = "Sum", since = 6)]
fn sum(node: &mut Node<'_>) -> Outputs {
    Ok(vec![each_with_next(node, "add")?])
}

/// `Mean` of any number of tensors.
#[rule(import.onnx, key = "Mean", since = 6)]
fn mean(node: &mut Node<'_>) -> Outputs {
    let sum = each_with_next(node, "add")?;
    let count = node.input_count();
    if count == 1 {
        return Ok(vec![sum]);
    }
    let count = node.scalar_like(sum, count as f64)?;
    Ok(vec![node.apply("divide", &[sum, count])?])
}
