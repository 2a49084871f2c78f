//! Caches that are written at a place of each sample.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, extent_of, not_among, places_along};

/// `TensorScatter`: along an axis, the update behind what each sample of the batch has already, from the start again at the end
/// where it is circular.
#[rule(import.onnx, key = "TensorScatter", since = 24)]
fn tensor_scatter(node: &mut Node<'_>) -> Outputs {
    let (cache, update) = (node.input(0)?, node.input(1)?);
    let (dims, own) = (node.dims(cache)?, node.dims(update)?);
    let axis = node.axis(node.int_or("axis", -2)?, dims.len())?;
    if own.len() != dims.len() || axis == 0 {
        return invalid("its update has other axes, or its axis is that of the batch");
    }
    let others = |kept: usize| -> Vec<i64> {
        (0..dims.len()).filter(|&other| other != kept).map(|other| other as i64).collect()
    };
    let mut places = places_along(node, own[axis])?;
    places = node.call("expand_dims", &[places], &[("axis", others(axis).into())])?;
    if let Some(starts) = node.optional(2) {
        let starts = cast_to(node, starts, DType::I64)?;
        let starts = node.call("expand_dims", &[starts], &[("axis", others(0).into())])?;
        places = node.apply("add", &[places, starts])?;
    }
    match node.text("mode", "linear")?.as_str() {
        "linear" => {}
        "circular" => {
            let extent = extent_of(node, dims[axis], "dimension of a circular cache")?;
            let extent = node.scalar(DType::I64, extent as f64)?;
            let rounds = node.apply("divide", &[places, extent])?;
            let before = node.apply("multiply", &[rounds, extent])?;
            places = node.apply("subtract", &[places, before])?;
        }
        other => return not_among("mode", other, &["linear", "circular"]),
    }
    let shape = node.shape(&own)?;
    let places = node.apply("broadcast_to", &[places, shape])?;
    let attrs = [("axis", (axis as i64).into())];
    Ok(vec![node.call("scatter_elements", &[cache, places, update], &attrs)?])
}
