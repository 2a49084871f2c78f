//! Indices as vectors with one place of their own.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, reshape_to};

/// `OneHot`: along a new axis, the second value at the index and the first elsewhere. Negative indices count
/// from the end; those beyond the axis are nowhere.
#[rule(import.onnx, key = "OneHot", since = 9)]
fn one_hot(node: &mut Node<'_>) -> Outputs {
    let (indices, values) = (node.input(0)?, node.input(2)?);
    let depth = match node.number(node.input(1)?) {
        Some(Scalar::Int(depth)) => depth,
        Some(Scalar::Float(depth)) => depth as i64,
        Some(Scalar::Bool(_)) | None => return of_dim(node),
    };
    let rank = node.dims(indices)?.len();
    let axis = node.axis(node.int_or("axis", -1)?, rank + 1)?;
    let bytes = usize::try_from(depth).ok().and_then(|depth| depth.checked_mul(size_of::<i64>()));
    if !bytes.is_some_and(|bytes| node.spend(bytes)) {
        return unsupported(format!("a depth of {depth}"));
    }
    let mut shape = vec![depth];
    shape.resize(1 + rank - axis, 1);
    let places: Vec<u8> = (0..depth).flat_map(i64::to_le_bytes).collect();
    let places = node.constant(DType::I64, &shape, &places)?;
    let indices = cast_to(node, indices, DType::I64)?;
    let extent = node.scalar_like(indices, depth as f64)?;
    at_places(node, [indices, values], (extent, places), axis)
}

/// `OneHot` as deep as a dimension.
fn of_dim(node: &mut Node<'_>) -> Outputs {
    let (indices, values) = (node.input(0)?, node.input(2)?);
    let &[depth] =
        node.elements(node.input(1)?).map(|it| it.elements).unwrap_or_default().as_slice()
    else {
        return node.not_extents(1);
    };
    let rank = node.dims(indices)?.len();
    let axis = node.axis(node.int_or("axis", -1)?, rank + 1)?;
    let shape = node.shape(&[depth])?;
    let places = node.apply("arange", &[shape])?;
    let mut dims = vec![depth];
    dims.resize(1 + rank - axis, node.cx().dim(1));
    let places = reshape_to(node, places, &dims)?;
    let extent = node.known(&Known::scalar(DType::I64, depth))?;
    let indices = cast_to(node, indices, DType::I64)?;
    at_places(node, [indices, values], (extent, places), axis)
}

/// The second value where an index is the place, the first elsewhere.
fn at_places(
    node: &mut Node<'_>,
    [indices, values]: [Value; 2],
    (extent, places): (Value, Value),
    axis: usize,
) -> Outputs {
    let zero = node.scalar_like(indices, 0.0)?;
    let is_negative = node.apply("less", &[indices, zero])?;
    let moved = node.apply("add", &[indices, extent])?;
    let indices = node.apply("where", &[is_negative, moved, indices])?;
    let indices = node.call("expand_dims", &[indices], &[("axis", vec![axis as i64].into())])?;
    let is_here = node.apply("equal", &[indices, places])?;
    let [off, on] = [0i64, 1].map(|index| {
        let index = node.constant(DType::I64, &[], &index.to_le_bytes())?;
        node.call("take", &[values, index], &[("axis", 0.into())])
    });
    Ok(vec![node.apply("where", &[is_here, on?, off?])?])
}
