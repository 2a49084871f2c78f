//! Heads of attention, and what each query takes from the values.

use tenon_plugin_api::rule::prelude::*;

use crate::steps::{cast_to, extent_of, reshape_to, scaled, wide};

/// `[batch, sequence, heads * size]` as `[batch, heads, sequence, size]`.
pub(crate) fn split(node: &mut Node<'_>, x: Value, heads: i64) -> Result<Value, Problem> {
    let &[batch, sequence, hidden] = node.dims(x)?.as_slice() else {
        return invalid("its heads lie in the last of three dimensions");
    };
    if heads < 1 || node.terms().dim_value(hidden).is_some_and(|hidden| hidden % heads != 0) {
        return invalid(format!("{heads} heads in an axis that they do not divide"));
    }
    let heads = node.cx().dim(heads);
    let size = node.cx().dim_floor_div(hidden, heads);
    let x = reshape_to(node, x, &[batch, sequence, heads, size])?;
    swap(node, x)
}

/// `[batch, heads, sequence, size]` as `[batch, sequence, heads * size]`.
pub(crate) fn merge(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    let x = swap(node, x)?;
    let dims = node.dims(x)?;
    let hidden = node.cx().dim_product(&dims[2..]);
    reshape_to(node, x, &[dims[0], dims[1], hidden])
}

/// Sequence and heads in each other's place.
fn swap(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    node.call("transpose", &[x], &[("axes", vec![0, 2, 1, 3].into())])
}

/// What is done to how much each query is like each key.
pub(crate) struct Scores {
    pub(crate) scale: Option<f64>,
    /// `c tanh(x / c)`, where it is not 0.
    pub(crate) softcap: f64,
    /// What is added, in turn.
    pub(crate) added: Vec<Value>,
    /// What one more key that stands for nothing is like: for each head.
    pub(crate) sink: Option<Value>,
}

/// `softmax(scale q k' + …) v`, for each head; several heads of the query may share one of keys and values.
pub(crate) fn attend(
    node: &mut Node<'_>,
    [query, key, value]: [Value; 3],
    how: &Scores,
) -> Result<Value, Problem> {
    let (dims, of_keys) = (node.dims(query)?, node.dims(key)?);
    let dtype = node.dtype(query)?;
    let what = "number of heads";
    let heads = [extent_of(node, dims[1], what)?, extent_of(node, of_keys[1], what)?];
    let size = extent_of(node, dims[3], "size of a head")?;
    if heads[1] < 1 || heads[0] % heads[1] != 0 {
        return invalid(format!("{} heads of the query for {} of keys", heads[0], heads[1]));
    }
    let group = heads[0] / heads[1];
    let [query, key, value] = [query, key, value].map(|x| cast_to(node, x, wide(dtype)));
    let (query, key, value) = (query?, key?, value?);
    let query = scaled(node, query, how.scale.unwrap_or(1.0 / (size as f64).sqrt()))?;
    let rows = node.cx().dim_mul(dims[2], node.cx().dim(group));
    // The heads that share one stand one below the other in one matrix.
    let shared = [dims[0], of_keys[1], rows];
    let together = |node: &mut Node<'_>, x: Value| {
        let last = node.dims(x)?[3];
        reshape_to(node, x, &[shared[0], shared[1], shared[2], last])
    };
    let apart = |node: &mut Node<'_>, x: Value| {
        let last = node.dims(x)?[3];
        reshape_to(node, x, &[dims[0], dims[1], dims[2], last])
    };
    let query = together(node, query)?;
    let scores = node.call("matmul", &[query, key], &[("transpose_b", true.into())])?;
    let mut scores = apart(node, scores)?;
    if how.softcap > 0.0 {
        let cap = node.scalar_like(scores, how.softcap)?;
        let part = node.apply("divide", &[scores, cap])?;
        let part = node.apply("tanh", &[part])?;
        scores = node.apply("multiply", &[part, cap])?;
    }
    for &added in &how.added {
        let added = cast_to(node, added, wide(dtype))?;
        scores = node.apply("add", &[scores, added])?;
    }
    let weights = match how.sink {
        None => node.call("nn.softmax", &[scores], &[("axis", (-1).into())])?,
        Some(sink) => with_sink(node, scores, sink)?,
    };
    let weights = together(node, weights)?;
    let y = node.apply("matmul", &[weights, value])?;
    let y = apart(node, y)?;
    cast_to(node, y, dtype)
}

/// A softmax with one more key for each head, whose weight is left out.
fn with_sink(node: &mut Node<'_>, scores: Value, sink: Value) -> Result<Value, Problem> {
    let dtype = node.dtype(scores)?;
    let sink = cast_to(node, sink, dtype)?;
    let attrs = [("axis", vec![-1].into()), ("keepdims", true.into())];
    let top = node.call("max", &[scores], &attrs)?;
    let top = node.apply("maximum", &[top, sink])?;
    let lowered = node.apply("subtract", &[scores, top])?;
    let parts = node.apply("exp", &[lowered])?;
    let sum = node.call("sum", &[parts], &attrs)?;
    let of_sink = node.apply("subtract", &[sink, top])?;
    let of_sink = node.apply("exp", &[of_sink])?;
    let sum = node.apply("add", &[sum, of_sink])?;
    node.apply("divide", &[parts, sum])
}

/// What is added where a condition is false, zero elsewhere.
pub(crate) fn unless(node: &mut Node<'_>, is_seen: Value, added: f64) -> Result<Value, Problem> {
    let (zero, added) = (node.scalar(DType::F32, 0.0)?, node.scalar(DType::F32, added)?);
    node.apply("where", &[is_seen, zero, added])
}
