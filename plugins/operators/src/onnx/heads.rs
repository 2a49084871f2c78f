//! Heads of attention, which lie side by side in the last axis.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{product, reshape_to};

/// `[batch, sequence, heads * size]` as `[batch, sequence, heads, size]`.
pub(crate) fn split_heads(node: &mut Node<'_>, x: Value, heads: i64) -> Result<Value, Problem> {
    let &[batch, sequence, hidden] = node.dims(x)?.as_slice() else {
        return invalid("its heads lie in the last of three dimensions");
    };
    if heads < 1 || node.terms().dim_value(hidden).is_some_and(|hidden| hidden % heads != 0) {
        return invalid(format!("{heads} heads in an axis that they do not divide"));
    }
    let heads = node.cx().dim(heads);
    let size = node.cx().dim_floor_div(hidden, heads);
    reshape_to(node, x, &[batch, sequence, heads, size])
}

/// `[batch, sequence, heads, size]` as `[batch, sequence, heads * size]`.
pub(crate) fn merge_heads(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    let dims = node.dims(x)?;
    let mut merged = dims[..2].to_vec();
    merged.push(product(node, &dims[2..]));
    reshape_to(node, x, &merged)
}

/// Sequence and heads in each other's place.
pub(crate) fn swap_heads(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    node.call("transpose", &[x], &[("axes", vec![0, 2, 1, 3].into())])
}

/// How many heads of the query share one of keys and values.
pub(crate) fn group_size(query_heads: i64, heads: i64) -> Result<i64, Problem> {
    match query_heads > 0 && heads > 0 && query_heads % heads == 0 {
        true => Ok(query_heads / heads),
        false => invalid(format!("{query_heads} heads of the query for {heads} of keys")),
    }
}
