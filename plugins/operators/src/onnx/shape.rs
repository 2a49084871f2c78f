//! Questions for the shape, answered as dimensions.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::product;

/// `Shape`, or a part of it.
#[rule(import.onnx, key = "Shape", since = 1)]
fn shape(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let rank = dims.len() as i64;
    let clamp =
        |index: i64| if index < 0 { index.saturating_add(rank) } else { index }.clamp(0, rank);
    let start = clamp(node.int_or("start", 0)?) as usize;
    let end = clamp(node.int_or("end", rank)?) as usize;
    let dims = dims.get(start..end).unwrap_or_default().to_vec();
    Ok(vec![node.known(&Known::vector(dims))?])
}

/// `Size`: the number of elements.
#[rule(import.onnx, key = "Size", since = 1)]
fn size(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let size = product(node, &dims);
    Ok(vec![node.known(&Known::scalar(DType::I64, size))?])
}
