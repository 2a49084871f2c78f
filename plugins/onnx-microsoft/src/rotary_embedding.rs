//! `RotaryEmbedding`, whose angles are looked up by positions.

use tenon_plugin_api::rule::prelude::*;

use crate::heads::{merge, split};
use crate::steps::{cast_to, extent_of, joined, only, places, reshape_to, scaled, sliced, wide};

/// `RotaryEmbedding`: pairs of elements of each head are turned by angles whose cosines and sines stand in tables.
#[rule(import.onnx, domain = "com.microsoft", key = "RotaryEmbedding")]
fn rotary_embedding(node: &mut Node<'_>) -> Outputs {
    only(node, "is_packed_batching", 0)?;
    let factor = node.float_or("scale", 1.0)?;
    let (x, positions) = (node.input(0)?, node.input(1)?);
    let tables = [node.input(2)?, node.input(3)?];
    let half = extent_of(node, node.dims(tables[0])?[1], "width of its tables")?;
    let dims = node.dims(x)?;
    let (heads, part) = (node.int_or("num_heads", 0)?, node.int_or("rotary_embedding_dim", 0)?);
    let in_heads = match dims.len() {
        4 => x,
        3 => {
            let hidden = extent_of(node, dims[2], "width of its input")?;
            let count = if part > 0 && heads > 0 { heads } else { hidden / (2 * half).max(1) };
            split(node, x, count)?
        }
        rank => return invalid(format!("its input has {rank} dimensions")),
    };
    let of = node.dims(in_heads)?;
    // One position is that of the first element of the sequence.
    let positions = match node.dims(positions)?.as_slice() {
        [_, _] => positions,
        _ => {
            let first = reshape_to(node, positions, &[])?;
            let first = cast_to(node, first, DType::I64)?;
            let at = places(node, of[2])?;
            let at = node.apply("add", &[at, first])?;
            let one = node.cx().dim(1);
            reshape_to(node, at, &[one, of[2]])?
        }
    };
    let y = turned(node, in_heads, positions, tables, node.flag("interleaved", false)?)?;
    let y = scaled(node, y, factor)?;
    Ok(vec![if dims.len() == 3 { merge(node, y)? } else { y }])
}

/// `[batch, heads, sequence, size]` turned by the angles at `[batch, sequence]` positions: twice as many elements as tables are
/// wide.
pub(crate) fn turned(
    node: &mut Node<'_>,
    x: Value,
    positions: Value,
    tables: [Value; 2],
    interleaved: bool,
) -> Result<Value, Problem> {
    let (dims, dtype) = (node.dims(x)?, node.dtype(x)?);
    let size = extent_of(node, dims[3], "size of a head")?;
    let half = extent_of(node, node.dims(tables[0])?[1], "width of its tables")?;
    if 2 * half > size {
        return invalid(format!("{} elements of a head of {size} are turned", 2 * half));
    }
    let own = sliced(node, x, 3, [0, 2 * half])?;
    let own = cast_to(node, own, wide(dtype))?;
    let one = node.cx().dim(1);
    let half_dim = node.cx().dim(half);
    let of_positions = node.dims(positions)?;
    let mut angles = Vec::with_capacity(2);
    for table in tables {
        let table = cast_to(node, table, wide(dtype))?;
        let rows = node.apply("take", &[table, positions])?;
        let mut shape = vec![of_positions[0], one, of_positions[1], half_dim];
        if interleaved {
            shape.push(one);
        }
        angles.push(reshape_to(node, rows, &shape)?);
    }
    let axis = if interleaved { 4 } else { 3 };
    let pairs = match interleaved {
        true => {
            let two = node.cx().dim(2);
            reshape_to(node, own, &[dims[0], dims[1], dims[2], half_dim, two])?
        }
        false => own,
    };
    let by = if interleaved { 1 } else { half };
    let (a, b) = (sliced(node, pairs, axis, [0, by])?, sliced(node, pairs, axis, [by, 2 * by])?);
    let [cos, sin] = [angles[0], angles[1]];
    let products = [[a, cos], [b, sin], [a, sin], [b, cos]];
    let [ac, bs, a_s, bc] = products.map(|pair| node.apply("multiply", &pair));
    let real = node.apply("subtract", &[ac?, bs?])?;
    let imaginary = node.apply("add", &[a_s?, bc?])?;
    let y = joined(node, &[real, imaginary], axis)?;
    let turned = node.cx().dim(2 * half);
    let y = reshape_to(node, y, &[dims[0], dims[1], dims[2], turned])?;
    let y = cast_to(node, y, dtype)?;
    if 2 * half == size {
        return Ok(y);
    }
    let rest = sliced(node, x, 3, [2 * half, size])?;
    joined(node, &[y, rest], 3)
}
