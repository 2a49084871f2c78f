//! The beginnings of sequences turned round.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, places_along};

/// `ReverseSequence`: of each sequence of a batch the elements before its length, from the last to the first, and then the others.
#[rule(import.onnx, key = "ReverseSequence", since = 10)]
fn reverse_sequence(node: &mut Node<'_>) -> Outputs {
    let (x, lengths) = (node.input(0)?, node.input(1)?);
    let dims = node.dims(x)?;
    let time = node.axis(node.int_or("time_axis", 0)?, dims.len())?;
    let batch = node.axis(node.int_or("batch_axis", 1)?, dims.len())?;
    if time == batch {
        return invalid("time and batch are one axis");
    }
    let others = |kept: usize| -> Vec<i64> {
        (0..dims.len()).filter(|&axis| axis != kept).map(|axis| axis as i64).collect()
    };
    let places = places_along(node, dims[time])?;
    let places = node.call("expand_dims", &[places], &[("axis", others(time).into())])?;
    let lengths = cast_to(node, lengths, DType::I64)?;
    let lengths = node.call("expand_dims", &[lengths], &[("axis", others(batch).into())])?;

    let is_turned = node.apply("less", &[places, lengths])?;
    let one = node.scalar(DType::I64, 1.0)?;
    let last = node.apply("subtract", &[lengths, one])?;
    let turned = node.apply("subtract", &[last, places])?;
    let from = node.apply("where", &[is_turned, turned, places])?;
    let shape = node.shape(&dims)?;
    let from = node.apply("broadcast_to", &[from, shape])?;
    Ok(vec![node.call("gather_elements", &[x, from], &[("axis", (time as i64).into())])?])
}
