//! A tensor repeated along its axes.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::reshape_to;

/// `Tile`: an axis of repetitions before each axis, then both become one.
#[rule(import.onnx, key = "Tile", since = 6)]
fn tile(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let repeats = node.input_dims(1)?;
    if repeats.len() != dims.len() {
        let (count, rank) = (repeats.len(), dims.len());
        return invalid(format!("{count} repetitions for {rank} dimensions"));
    }
    if repeats.iter().any(|&dim| node.terms().dim_value(dim).is_some_and(|count| count < 0)) {
        return invalid("a negative repetition");
    }
    let one = node.cx().dim(1);
    let pairs = || dims.iter().zip(&repeats);
    let narrow: Vec<Dim> = dims.iter().flat_map(|&dim| [one, dim]).collect();
    let wide: Vec<Dim> = pairs().flat_map(|(&dim, &count)| [count, dim]).collect();
    let whole: Vec<Dim> = pairs().map(|(&dim, &count)| node.cx().dim_mul(dim, count)).collect();
    let x = reshape_to(node, x, &narrow)?;
    let wide = node.shape(&wide)?;
    let x = node.apply("broadcast_to", &[x, wide])?;
    Ok(vec![reshape_to(node, x, &whole)?])
}
