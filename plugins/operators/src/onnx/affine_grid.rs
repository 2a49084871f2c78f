//! Places in the images that affine maps take places to.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, check_equal, reshape_to, scaled, shifted, sliced, wide};

/// `AffineGrid`: for each place of an image, which goes from -1 to 1 along each axis, where a matrix takes it.
///
/// ```text
/// grid[n, y, x] = theta[n, :, 0] * x + theta[n, :, 1] * y + theta[n, :, 2]
/// ```
#[rule(import.onnx, key = "AffineGrid", since = 20)]
fn affine_grid(node: &mut Node<'_>) -> Outputs {
    let theta = node.input(0)?;
    let size = node.input_dims(1)?;
    let dims = node.dims(theta)?;
    let spatial = size.get(2..).unwrap_or_default().to_vec();
    let rank = spatial.len();
    let (&[batch, rows, columns], 2..=3) = (dims.as_slice(), rank) else {
        return invalid(format!("its theta has rank {}, its size {}", dims.len(), size.len()));
    };
    let count = |extent: usize| node.cx().dim(extent as i64);
    check_equal(node, [batch, size[0]], "the batches of theta and size")?;
    check_equal(node, [rows, count(rank)], "the axes of theta and size")?;
    check_equal(node, [columns, count(rank + 1)], "the axes of theta and size")?;
    let (batch, whole) = (size[0], [size[0], count(rank), count(rank + 1)]);
    let theta = if dims == whole { theta } else { reshape_to(node, theta, &whole)? };

    let dtype = node.dtype(theta)?;
    let theta = cast_to(node, theta, wide(dtype))?;
    let mut grid = column(node, theta, rank, batch, rank)?;
    // The first column is about the last axis.
    for (index, &extent) in spatial.iter().rev().enumerate() {
        let places = places(node, wide(dtype), extent, index)?;
        let slope = column(node, theta, index, batch, rank)?;
        let part = node.apply("multiply", &[places, slope])?;
        grid = node.apply("add", &[grid, part])?;
    }
    Ok(vec![cast_to(node, grid, dtype)?])
}

/// A column of each matrix, with an axis for each of the grid before the last one.
fn column(
    node: &mut Node<'_>,
    theta: Value,
    index: usize,
    batch: Dim,
    rank: usize,
) -> Result<Value, Problem> {
    let column = sliced(node, theta, 2, [index as i64, index as i64 + 1])?;
    let mut dims = vec![batch];
    dims.resize(1 + rank, node.cx().dim(1));
    dims.push(node.cx().dim(rank as i64));
    reshape_to(node, column, &dims)
}

/// The places along an axis, which `behind` others of the grid follow.
fn places(node: &mut Node<'_>, dtype: DType, extent: Dim, behind: usize) -> Result<Value, Problem> {
    let is_aligned = node.flag("align_corners", false)?;
    let mut shape = vec![extent];
    shape.resize(behind + 2, node.cx().dim(1));
    let Some(extent) = node.terms().dim_value(extent) else {
        let places = symbolic_places(node, dtype, extent, is_aligned)?;
        return reshape_to(node, places, &shape);
    };
    let bytes = usize::try_from(extent).ok().and_then(|extent| extent.checked_mul(8));
    if !bytes.is_some_and(|bytes| node.spend(bytes)) {
        return unsupported(format!("a grid of extent {extent}"));
    }
    let at = |i: i64| match is_aligned {
        true if extent == 1 => 0.0,
        true => (2 * i) as f64 / (extent - 1) as f64 - 1.0,
        false => (2 * i + 1) as f64 / extent as f64 - 1.0,
    };
    let elements = (0..extent).map(|i| Scalar::bytes_of(dtype, at(i)));
    let Some(elements) = elements.collect::<Option<Vec<_>>>() else {
        return unsupported(format!("the element type {dtype}"));
    };
    let places = node.constant(dtype, &[extent], &elements.concat())?;
    reshape_to(node, places, &shape)
}

/// Those along an axis of which nobody knows how long it is.
fn symbolic_places(
    node: &mut Node<'_>,
    dtype: DType,
    extent: Dim,
    is_aligned: bool,
) -> Result<Value, Problem> {
    let shape = node.shape(&[extent])?;
    let places = node.call("arange", &[shape], &[("dtype", dtype.to_string().into())])?;
    let twice = scaled(node, places, 2.0)?;
    let (cx, one) = (node.cx(), node.cx().dim(1));
    let last = cx.dim_sub(extent, one);
    // The middle is the only place of an axis of one.
    let (first, steps, shift) = match is_aligned {
        true => (0.0, cx.dim_max(last, one), cx.dim_min(last, one)),
        false => (1.0, extent, one),
    };
    let [steps, shift] = [steps, shift].map(|dim| {
        let number = node.known(&Known::scalar(DType::I64, dim))?;
        cast_to(node, number, dtype)
    });
    let (steps, shift) = (steps?, shift?);
    let places = shifted(node, twice, first)?;
    let places = node.apply("divide", &[places, steps])?;
    node.apply("subtract", &[places, shift])
}
