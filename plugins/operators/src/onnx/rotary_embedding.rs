//! Positions as rotations.

use tenon_plugin_api::rule::prelude::*;

use super::heads::split_heads;
use crate::onnx::steps::{cast_to, check_equal, extent_of, joined, reshape_to, sliced, wide};

/// `RotaryEmbedding`: pairs of elements of each head are turned by angles whose cosines and sines are given.
#[rule(import.onnx, key = "RotaryEmbedding", since = 23)]
fn rotary_embedding(node: &mut Node<'_>) -> Outputs {
    node.check_arity(3, 4)?;
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let (dims, heads) = (node.dims(x)?, node.int("num_heads")?);
    // Of three dimensions the heads stand behind the sequence, of four before it.
    let (x, head_axis) = match (dims.len(), heads) {
        (4, _) => (x, 1),
        (3, Some(heads)) => (split_heads(node, x, heads)?, 2),
        (3, None) => return invalid("its attribute `num_heads` is missing"),
        (rank, _) => return invalid(format!("its input has {rank} dimensions")),
    };
    let size = extent_of(node, node.dims(x)?[3], "size of a head")?;
    let rotated = match node.int_or("rotary_embedding_dim", 0)? {
        0 => size,
        part => part,
    };
    if !(0..=size).contains(&rotated) || rotated % 2 != 0 {
        return invalid(format!("{rotated} elements of a head of {size} are rotated"));
    }
    let [cos, sin] = [1, 2].map(|index| angles(node, index, head_axis, rotated / 2));
    let (cos, sin) = (cos?, sin?);
    let part = sliced(node, x, 3, [0, rotated])?;
    let part = cast_to(node, part, wide(dtype))?;
    let part = turned(node, part, [cos, sin], rotated)?;
    let mut parts = vec![cast_to(node, part, dtype)?];
    if rotated < size {
        parts.push(sliced(node, x, 3, [rotated, size])?);
    }
    let y = joined(node, &parts, 3)?;
    Ok(vec![reshape_to(node, y, &dims)?])
}

/// Cosines or sines, an axis for the heads among theirs.
fn angles(node: &mut Node<'_>, index: usize, head_axis: i64, count: i64) -> Result<Value, Problem> {
    let mut table = node.input(index)?;
    if let Some(positions) = node.optional(3) {
        table = node.call("take", &[table, positions], &[("axis", 0.into())])?;
    }
    match node.dims(table)?.as_slice() {
        &[_, _, own] => {
            let what = "the angles and the elements that are rotated";
            check_equal(node, [own, node.cx().dim(count)], what)?;
        }
        dims => return invalid(format!("its angles have {} dimensions", dims.len())),
    }
    let dtype = wide(node.dtype(table)?);
    let table = cast_to(node, table, dtype)?;
    node.call("expand_dims", &[table], &[("axis", vec![head_axis].into())])
}

/// Each pair `(a, b)` as `(a cos - b sin, a sin + b cos)`.
fn turned(
    node: &mut Node<'_>,
    x: Value,
    [cos, sin]: [Value; 2],
    count: i64,
) -> Result<Value, Problem> {
    let is_interleaved = node.flag("interleaved", false)?;
    let [a, b] = if is_interleaved {
        [0, 1].map(|first| every_other(node, x, first))
    } else {
        [[0, count / 2], [count / 2, count]].map(|range| sliced(node, x, 3, range))
    };
    let (a, b) = (a?, b?);
    let minuend = node.apply("multiply", &[a, cos])?;
    let subtrahend = node.apply("multiply", &[b, sin])?;
    let real = node.apply("subtract", &[minuend, subtrahend])?;
    let summands = [node.apply("multiply", &[a, sin])?, node.apply("multiply", &[b, cos])?];
    let imaginary = node.apply("add", &summands)?;
    if !is_interleaved {
        return joined(node, &[real, imaginary], 3);
    }
    let behind = [("axis", vec![4].into())];
    let real = node.call("expand_dims", &[real], &behind)?;
    let imaginary = node.call("expand_dims", &[imaginary], &behind)?;
    let pairs = joined(node, &[real, imaginary], 4)?;
    let dims = node.dims(x)?;
    reshape_to(node, pairs, &dims)
}

fn every_other(node: &mut Node<'_>, x: Value, first: i64) -> Result<Value, Problem> {
    let attrs = [
        ("begin", vec![first].into()),
        ("end", vec![i64::MAX].into()),
        ("strides", vec![2].into()),
        ("axes", vec![3].into()),
    ];
    node.call("strided_slice", &[x], &attrs)
}
