//! Blocks of places as channels, and channels as blocks of places.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{not_among, reshape_to};

/// `DepthToSpace`: channels become blocks of `blocksize` times `blocksize` places.
#[rule(import.onnx, key = "DepthToSpace", since = 1)]
fn depth_to_space(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let [n, c, h, w] = image_dims(node, x)?;
    let size = block_size(node)?;
    let depth = over(node, c, node.cx().dim_mul(size, size))?;
    let (split, axes) = match node.text("mode", "DCR")?.as_str() {
        "DCR" => ([n, size, size, depth, h, w], vec![0, 3, 4, 1, 5, 2]),
        "CRD" => ([n, depth, size, size, h, w], vec![0, 1, 4, 2, 5, 3]),
        other => return not_among("mode", other, &["DCR", "CRD"]),
    };
    let x = reshape_to(node, x, &split)?;
    let x = node.call("transpose", &[x], &[("axes", axes.into())])?;
    let whole = [n, depth, node.cx().dim_mul(h, size), node.cx().dim_mul(w, size)];
    Ok(vec![reshape_to(node, x, &whole)?])
}

/// `SpaceToDepth`: blocks of `blocksize` times `blocksize` places become channels.
#[rule(import.onnx, key = "SpaceToDepth", since = 1)]
fn space_to_depth(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let [n, c, h, w] = image_dims(node, x)?;
    let size = block_size(node)?;
    let (rows, columns) = (over(node, h, size)?, over(node, w, size)?);
    let axes = match node.text("mode", "DCR")?.as_str() {
        "DCR" => vec![0, 3, 5, 1, 2, 4],
        "CRD" => vec![0, 1, 3, 5, 2, 4],
        other => return not_among("mode", other, &["DCR", "CRD"]),
    };
    let x = reshape_to(node, x, &[n, c, rows, size, columns, size])?;
    let x = node.call("transpose", &[x], &[("axes", axes.into())])?;
    let depth = node.cx().dim_mul(c, node.cx().dim_mul(size, size));
    Ok(vec![reshape_to(node, x, &[n, depth, rows, columns])?])
}

fn image_dims(node: &Node<'_>, x: Value) -> Result<[Dim; 4], Problem> {
    let dims = node.dims(x)?;
    match <[Dim; 4]>::try_from(dims.as_slice()) {
        Ok(dims) => Ok(dims),
        Err(_) => invalid(format!("its data have {} dimensions, expected four", dims.len())),
    }
}

fn block_size(node: &Node<'_>) -> Result<Dim, Problem> {
    match node.int("blocksize")? {
        Some(size) if (1..=1 << 16).contains(&size) => Ok(node.cx().dim(size)),
        Some(size) => invalid(format!(
            "its attribute `blocksize` is {size}, expected to be between 1 and 65536"
        )),
        None => invalid("its attribute `blocksize` is missing"),
    }
}

fn over(node: &Node<'_>, dim: Dim, by: Dim) -> Result<Dim, Problem> {
    match (node.terms().dim_value(dim), node.terms().dim_value(by)) {
        (Some(dim), Some(by)) if dim % by != 0 => {
            invalid(format!("its blocks, of {by} here, do not divide an extent of {dim}"))
        }
        _ => Ok(node.cx().dim_floor_div(dim, by)),
    }
}
