//! Operators that move elements between axes.

use crate::ir::{Context, Dim};
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid};
use crate::onnx::import::node::NodeCx;

use super::shape::reshape_to;

type Outputs = Result<Vec<Value>, Problem>;

/// `DepthToSpace`: channels become blocks of `blocksize` times `blocksize` places.
pub(in crate::onnx::import) fn depth_to_space(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let [n, c, h, w] = image_dims(cx, x)?;
    let size = block_size(cx)?;
    let depth = over(cx, c, cx.cx().dim_mul(size, size))?;
    let (split, axes) = match cx.text("mode", "DCR")?.as_str() {
        "DCR" => ([n, size, size, depth, h, w], vec![0, 3, 4, 1, 5, 2]),
        "CRD" => ([n, depth, size, size, h, w], vec![0, 1, 4, 2, 5, 3]),
        other => return invalid(format!("its attribute `mode` is {other:?}")),
    };
    let x = reshape_to(cx, x, &split)?;
    let x = cx.call("transpose", &[x], &[("axes", axes.into())])?;
    let whole = [n, depth, cx.cx().dim_mul(h, size), cx.cx().dim_mul(w, size)];
    Ok(vec![reshape_to(cx, x, &whole)?])
}

/// `SpaceToDepth`: blocks of `blocksize` times `blocksize` places become channels.
pub(in crate::onnx::import) fn space_to_depth(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let [n, c, h, w] = image_dims(cx, x)?;
    let size = block_size(cx)?;
    let (rows, columns) = (over(cx, h, size)?, over(cx, w, size)?);
    let axes = match cx.text("mode", "DCR")?.as_str() {
        "DCR" => vec![0, 3, 5, 1, 2, 4],
        "CRD" => vec![0, 1, 3, 5, 2, 4],
        other => return invalid(format!("its attribute `mode` is {other:?}")),
    };
    let x = reshape_to(cx, x, &[n, c, rows, size, columns, size])?;
    let x = cx.call("transpose", &[x], &[("axes", axes.into())])?;
    let depth = cx.cx().dim_mul(c, cx.cx().dim_mul(size, size));
    Ok(vec![reshape_to(cx, x, &[n, depth, rows, columns])?])
}

fn image_dims(cx: &NodeCx<'_, '_>, x: Value) -> Result<[Dim; 4], Problem> {
    let dims = cx.dims(x)?;
    match <[Dim; 4]>::try_from(dims.as_slice()) {
        Ok(dims) => Ok(dims),
        Err(_) => invalid(format!("its data have {} dimensions, expected four", dims.len())),
    }
}

fn block_size(cx: &NodeCx<'_, '_>) -> Result<Dim, Problem> {
    match cx.int("blocksize")? {
        Some(size) if (1..=1 << 16).contains(&size) => Ok(cx.cx().dim(size)),
        size => invalid(format!("its attribute `blocksize` is {size:?}")),
    }
}

fn over(cx: &NodeCx<'_, '_>, dim: Dim, by: Dim) -> Result<Dim, Problem> {
    match (cx.terms().dim_value(dim), cx.terms().dim_value(by)) {
        (Some(dim), Some(by)) if dim % by != 0 => invalid(format!("{by} does not divide {dim}")),
        _ => Ok(cx.cx().dim_floor_div(dim, by)),
    }
}

/// `Tile`: an axis of repetitions before each axis, then both become one.
pub(in crate::onnx::import) fn tile(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let repeats = cx.input_dims(1)?;
    if repeats.len() != dims.len() {
        let (count, rank) = (repeats.len(), dims.len());
        return invalid(format!("{count} repetitions for {rank} dimensions"));
    }
    if repeats.iter().any(|&dim| cx.terms().dim_value(dim).is_some_and(|count| count < 0)) {
        return invalid("a negative repetition");
    }
    let one = cx.cx().dim(1);
    let pairs = || dims.iter().zip(&repeats);
    let narrow: Vec<Dim> = dims.iter().flat_map(|&dim| [one, dim]).collect();
    let wide: Vec<Dim> = pairs().flat_map(|(&dim, &count)| [count, dim]).collect();
    let whole: Vec<Dim> = pairs().map(|(&dim, &count)| cx.cx().dim_mul(dim, count)).collect();
    let x = reshape_to(cx, x, &narrow)?;
    let wide = cx.shape(&wide);
    let x = cx.apply("broadcast_to", &[x, wide])?;
    Ok(vec![reshape_to(cx, x, &whole)?])
}
