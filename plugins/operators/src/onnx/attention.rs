//! Attention: what the keys that a query is like stand for.

mod mask;

use tenon_plugin_api::rule::prelude::*;

use super::heads::{group_size, merge_heads, split_heads, swap_heads};
use crate::onnx::steps::{cast_to, extent_of, joined, reshape_to, scaled, wide};
use mask::{Mask, Sequence};

/// `Attention`: `softmax(mask(cap(scale q k'))) v`, each head for itself.
///
/// What lies between the products is computed in f32 or wider. A query without keys that it may look at gives zeros.
#[rule(import.onnx, key = "Attention", since = 23)]
fn attention(node: &mut Node<'_>) -> Outputs {
    node.check_arity(3, 7)?;
    let rank = node.dims(node.input(0)?)?.len();
    let query = in_heads(node, 0, "q_num_heads", rank)?;
    let new_key = in_heads(node, 1, "kv_num_heads", rank)?;
    let new_value = in_heads(node, 2, "kv_num_heads", rank)?;
    if node.optional(4).is_some() != node.optional(5).is_some() {
        return invalid("past keys and past values go together");
    }
    let (key, value) = (behind_past(node, new_key, 4)?, behind_past(node, new_value, 5)?);
    let dtype = node.dtype(query)?;
    let [queries, keys, new] = [query, key, new_key].map(|x| node.dims(x).map(|dims| dims[2]));
    let sequence = Sequence { queries: queries?, keys: keys?, new: new? };
    let group = Group::of(node, query, key)?;

    let scores = scores(node, query, key, &group)?;
    let capped = capped(node, scores)?;
    let mask = Mask::of(node, &sequence, wide(dtype))?;
    let masked = mask.apply(node, capped)?;
    let weights = weights(node, masked, mask.may_leave_nothing)?;
    let weights = cast_to(node, weights, dtype)?;
    let shown = match node.int_or("qk_matmul_output_mode", 0)? {
        0 => scores,
        1 => capped,
        2 => masked,
        3 => weights,
        other => {
            return invalid(format!(
                "its attribute `qk_matmul_output_mode` is {other}; allowed is 0 to 3"
            ));
        }
    };
    let mut y = weighted(node, weights, value, &group)?;
    y = cast_to(node, y, dtype)?;
    if rank == 3 {
        y = swap_heads(node, y)?;
        y = merge_heads(node, y)?;
    }
    Ok(vec![y, key, value, cast_to(node, shown, dtype)?])
}

/// An input as `[batch, heads, sequence, size]`.
fn in_heads(node: &mut Node<'_>, index: usize, heads: &str, rank: usize) -> Result<Value, Problem> {
    let x = node.input(index)?;
    let own = node.dims(x)?.len();
    match (own, node.int(heads)?) {
        _ if own != rank => invalid(format!("its inputs have {rank} and {own} dimensions")),
        (4, _) => Ok(x),
        (3, Some(heads)) => {
            let x = split_heads(node, x, heads)?;
            swap_heads(node, x)
        }
        (3, None) => invalid(format!("its attribute `{heads}` is missing")),
        _ => invalid(format!("its inputs have {rank} dimensions")),
    }
}

/// Keys or values with those of input `index`, if it is given, before them.
fn behind_past(node: &mut Node<'_>, new: Value, index: usize) -> Result<Value, Problem> {
    match node.optional(index) {
        None => Ok(new),
        Some(past) => joined(node, &[past, new], 2),
    }
}

/// Heads of the query that share one of keys and values. These stand one below the other in one matrix.
struct Group {
    size: i64,
    /// Batch, and heads of the keys.
    outer: [Dim; 2],
    /// Batch, heads of the query, and queries.
    each: [Dim; 3],
}

impl Group {
    fn of(node: &Node<'_>, query: Value, key: Value) -> Result<Self, Problem> {
        let (dims, of_keys) = (node.dims(query)?, node.dims(key)?);
        let size = match dims[1] == of_keys[1] {
            true => 1,
            false => {
                let what = "number of heads";
                group_size(extent_of(node, dims[1], what)?, extent_of(node, of_keys[1], what)?)?
            }
        };
        Ok(Self { size, outer: [dims[0], of_keys[1]], each: [dims[0], dims[1], dims[2]] })
    }

    /// The product of a matrix for each head of the query with one for each head of the keys.
    fn product(
        &self,
        node: &mut Node<'_>,
        [a, b]: [Value; 2],
        attrs: &[(&str, AttrValue)],
    ) -> Result<Value, Problem> {
        if self.size == 1 {
            return node.call("matmul", &[a, b], attrs);
        }
        let inner = node.dims(a)?[3];
        let rows = node.cx().dim_mul(self.each[2], node.cx().dim(self.size));
        let a = reshape_to(node, a, &[self.outer[0], self.outer[1], rows, inner])?;
        let product = node.call("matmul", &[a, b], attrs)?;
        let columns = node.dims(product)?[3];
        reshape_to(node, product, &[self.each[0], self.each[1], self.each[2], columns])
    }
}

/// How much each query is like each key, in f32 or wider.
fn scores(node: &mut Node<'_>, query: Value, key: Value, group: &Group) -> Result<Value, Problem> {
    let scale = match node.float("scale")? {
        Some(scale) => f64::from(scale),
        None => {
            let size = extent_of(node, node.dims(query)?[3], "size of a head")?;
            1.0 / (size as f64).sqrt()
        }
    };
    let mut attrs = vec![("transpose_b", true.into())];
    // A sum of products must not overflow that is small once it is scaled: f32 has room for any of short floats.
    match node.dtype(query)? {
        DType::F16 | DType::BF16 => {
            attrs.push(("out_dtype", "f32".into()));
            let product = group.product(node, [query, key], &attrs)?;
            scaled(node, product, scale)
        }
        _ => {
            let query = scaled(node, query, scale)?;
            group.product(node, [query, key], &attrs)
        }
    }
}

/// Scores within plus and minus `softcap`, if there is one.
fn capped(node: &mut Node<'_>, scores: Value) -> Result<Value, Problem> {
    let cap = node.float_or("softcap", 0.0)?;
    if cap <= 0.0 {
        return Ok(scores);
    }
    let limit = node.scalar_like(scores, cap)?;
    let part = node.apply("divide", &[scores, limit])?;
    let part = node.apply("tanh", &[part])?;
    node.apply("multiply", &[part, limit])
}

/// Softmax of each row, zeros for one that may not look at any key.
fn weights(node: &mut Node<'_>, scores: Value, may_be_empty: bool) -> Result<Value, Problem> {
    let scores = match node.element_type("softmax_precision")? {
        Some(precision) if precision.is_float() => cast_to(node, scores, precision)?,
        Some(other) => return invalid(format!("its attribute `softmax_precision` is {other}")),
        None => scores,
    };
    let weights = node.call("nn.softmax", &[scores], &[("axis", (-1).into())])?;
    if !may_be_empty {
        return Ok(weights);
    }
    let attrs = [("axis", vec![-1].into()), ("keepdims", true.into())];
    let top = node.call("max", &[scores], &attrs)?;
    let least = node.scalar_like(top, f64::NEG_INFINITY)?;
    let is_empty = node.apply("equal", &[top, least])?;
    let zero = node.scalar_like(weights, 0.0)?;
    node.apply("where", &[is_empty, zero, weights])
}

/// Values, weighed.
fn weighted(
    node: &mut Node<'_>,
    weights: Value,
    value: Value,
    group: &Group,
) -> Result<Value, Problem> {
    let dtypes = [node.dtype(weights)?, node.dtype(value)?];
    if dtypes[0] == dtypes[1] {
        return group.product(node, [weights, value], &[]);
    }
    let common = if dtypes.contains(&DType::F64) { DType::F64 } else { DType::F32 };
    let (weights, value) = (cast_to(node, weights, common)?, cast_to(node, value, common)?);
    group.product(node, [weights, value], &[])
}

/// `FlexAttention` without graphs of its own: nothing is masked.
#[rule(import.onnx, domain = "ai.onnx.preview", key = "FlexAttention", since = 1)]
fn flexible(node: &mut Node<'_>) -> Outputs {
    node.check_arity(3, 3)?;
    let (query, key, value) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let ranks = [query, key, value].map(|x| node.dims(x).map(|dims| dims.len()));
    for rank in ranks {
        if rank? != 4 {
            return invalid("its inputs have four dimensions");
        }
    }
    let group = Group::of(node, query, key)?;
    let scores = scores(node, query, key, &group)?;
    let weights = weights(node, scores, false)?;
    let y = weighted(node, weights, value, &group)?;
    let dtype = node.dtype(query)?;
    Ok(vec![cast_to(node, y, dtype)?])
}
