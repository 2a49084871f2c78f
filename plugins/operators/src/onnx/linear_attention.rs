//! Attention that is linear in the sequence: a matrix of what keys stand for is carried along it.

use tenon_plugin_api::rule::prelude::*;

use super::heads::{group_size, merge_heads, split_heads};
use crate::onnx::steps::{cast_to, check_equal, extent_of, joined, not_among, reshape_to, scaled};

/// Each step of a sequence becomes operators of its own, so a longer one is refused.
const LONGEST: i64 = 64;

/// `LinearAttention`: at each step, with S the state, k, v and q the key, value and query of the step:
///
/// ```text
/// S := exp(decay) S                    gated, gated_delta
/// v := beta (v - k' S)                 delta, gated_delta
/// S := S + k v'
/// y := scale q' S
/// ```
#[rule(import.onnx, key = "LinearAttention", since = 27)]
fn linear_attention(node: &mut Node<'_>) -> Outputs {
    node.check_arity(3, 6)?;
    // It says how to compute, not what.
    node.ignore("chunk_size");
    let (is_gated, is_delta) = match node.text("update_rule", "gated_delta")?.as_str() {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => {
            return not_among("update_rule", other, &["linear", "gated", "delta", "gated_delta"]);
        }
    };
    for (index, name, is_read) in [(4, "decay", is_gated), (5, "beta", is_delta)] {
        if node.optional(index).is_some() != is_read {
            return invalid(format!("its `update_rule` and the input `{name}` do not fit"));
        }
    }
    let [Some(query_heads), Some(heads)] = [node.int("q_num_heads")?, node.int("kv_num_heads")?]
    else {
        return invalid("its attributes `q_num_heads` and `kv_num_heads` are missing");
    };
    let group = group_size(query_heads, heads)?;
    let shape = Shape::of(node, query_heads, heads, group)?;
    let (dtype, mut state) = (node.dtype(node.input(0)?)?, shape.state(node)?);
    let state_dtype = match node.optional(3) {
        Some(past) => node.dtype(past)?,
        None => dtype,
    };
    let steps = shape.steps(node)?;
    let mut outputs = Vec::with_capacity(steps.len());
    for step in steps {
        state = step.update(node, state)?;
        let read = node.apply("matmul", &[step.query, state])?;
        outputs.push(shape.output(node, read)?);
    }
    let y = joined(node, &outputs, 1)?;
    let y = merge_heads(node, y)?;
    Ok(vec![cast_to(node, y, dtype)?, cast_to(node, state, state_dtype)?])
}

/// What the state takes in at one step: `[batch, heads, rows, columns]` each.
struct Step {
    /// A row for each head of the group, scaled.
    query: Value,
    /// A column.
    key: Value,
    /// A row.
    value: Value,
    /// A column, or one number.
    decay: Option<Value>,
    /// One number.
    beta: Option<Value>,
}

impl Step {
    fn update(&self, node: &mut Node<'_>, mut state: Value) -> Result<Value, Problem> {
        if let Some(decay) = self.decay {
            let factor = node.apply("exp", &[decay])?;
            state = node.apply("multiply", &[state, factor])?;
        }
        let mut value = self.value;
        if let Some(beta) = self.beta {
            let attrs = [("transpose_a", true.into())];
            let known = node.call("matmul", &[self.key, state], &attrs)?;
            let new = node.apply("subtract", &[value, known])?;
            value = node.apply("multiply", &[beta, new])?;
        }
        let written = node.apply("multiply", &[self.key, value])?;
        node.apply("add", &[state, written])
    }
}

struct Shape {
    batch: Dim,
    /// Number of steps.
    length: i64,
    heads: i64,
    group: i64,
    key_size: i64,
    value_size: i64,
    scale: f64,
}

impl Shape {
    fn of(node: &Node<'_>, query_heads: i64, heads: i64, group: i64) -> Result<Self, Problem> {
        let dims = |index| -> Result<[Dim; 3], Problem> {
            let dims = node.dims(node.input(index)?)?;
            let found = <[Dim; 3]>::try_from(dims.as_slice());
            found.or_else(|_| invalid(format!("an input of {} dimensions", dims.len())))
        };
        let ([batch, length, query], [_, of_keys, _], [_, of_values, value]) =
            (dims(0)?, dims(1)?, dims(2)?);
        for other in [of_keys, of_values] {
            check_equal(node, [length, other], "the lengths of query, keys and values")?;
        }
        let length = extent_of(node, length, "sequence length")?;
        if !(1..=LONGEST).contains(&length) {
            return unsupported(format!("a sequence of {length} steps; 1 to {LONGEST} are"));
        }
        let key_size = extent_of(node, query, "size of a query")? / query_heads;
        let value_size = extent_of(node, value, "size of a value")? / heads;
        let scale = match node.float_or("scale", 0.0)? {
            0.0 => 1.0 / (key_size as f64).sqrt(),
            scale => scale,
        };
        Ok(Self { batch, length, heads, group, key_size, value_size, scale })
    }

    /// The state before the first step.
    fn state(&self, node: &mut Node<'_>) -> Result<Value, Problem> {
        let dims = self.dims(node, [self.heads, self.key_size, self.value_size]);
        let Some(past) = node.optional(3) else {
            let shape = node.shape(&dims)?;
            return node.call("full", &[shape], &[("value", 0.0.into())]);
        };
        let own = node.dims(past)?;
        if own.len() != dims.len() {
            return invalid(format!("its state has {} dimensions", own.len()));
        }
        for (&own, &dim) in own.iter().zip(&dims) {
            check_equal(node, [own, dim], "its state and what it is made of")?;
        }
        cast_to(node, past, DType::F32)
    }

    fn steps(&self, node: &mut Node<'_>) -> Result<Vec<Step>, Problem> {
        let queries = self.each(node, 0, self.heads * self.group)?;
        let queries = queries.into_iter().map(|query| {
            let dims = self.dims(node, [self.heads, self.group, self.key_size]);
            let query = reshape_to(node, query, &dims)?;
            scaled(node, query, self.scale)
        });
        let queries: Vec<Value> = queries.collect::<Result<_, _>>()?;
        let keys = self.columns(node, 1, self.heads)?;
        let values = self.each(node, 2, self.heads)?;
        let decays = match node.optional(4) {
            Some(_) => Some(self.columns(node, 4, self.heads)?),
            None => None,
        };
        let betas = match node.optional(5) {
            Some(beta) => {
                // One for each head, or for all of them.
                let dims = node.dims(beta)?;
                let own = dims.last().and_then(|&dim| node.terms().dim_value(dim));
                let heads = if own == Some(1) { 1 } else { self.heads };
                Some(self.columns(node, 5, heads)?)
            }
            None => None,
        };
        let mut steps = Vec::with_capacity(queries.len());
        for (place, query) in queries.into_iter().enumerate() {
            let value = self.dims(node, [self.heads, 1, self.value_size]);
            let value = reshape_to(node, values[place], &value)?;
            let at = |list: &Option<Vec<Value>>| list.as_ref().map(|list| list[place]);
            let (decay, beta) = (at(&decays), at(&betas));
            steps.push(Step { query, key: keys[place], value, decay, beta });
        }
        Ok(steps)
    }

    /// An input at each step, `[batch, 1, heads, size]`.
    fn each(&self, node: &mut Node<'_>, index: usize, heads: i64) -> Result<Vec<Value>, Problem> {
        let x = node.input(index)?;
        let x = cast_to(node, x, DType::F32)?;
        let x = split_heads(node, x, heads)?;
        let extent = node.dims(x)?[1];
        let length = node.cx().dim(self.length);
        check_equal(node, [extent, length], "the lengths of its inputs")?;
        if self.length == 1 {
            return Ok(vec![x]);
        }
        let attrs = [("sections", self.length.into()), ("axis", 1.into())];
        let parts = node.call("split", &[x], &attrs)?;
        node.items(parts)
    }

    /// An input at each step, `[batch, heads, size, 1]`.
    fn columns(
        &self,
        node: &mut Node<'_>,
        index: usize,
        heads: i64,
    ) -> Result<Vec<Value>, Problem> {
        let parts = self.each(node, index, heads)?;
        let columns = parts.into_iter().map(|part| {
            let dims = node.dims(part)?;
            reshape_to(node, part, &[dims[0], dims[2], dims[3], node.cx().dim(1)])
        });
        columns.collect()
    }

    /// What is read at a step, `[batch, heads, group, size]`, as `[batch, 1, query heads, size]`.
    fn output(&self, node: &mut Node<'_>, read: Value) -> Result<Value, Problem> {
        let dims = self.dims(node, [1, self.heads * self.group, self.value_size]);
        reshape_to(node, read, &dims)
    }

    fn dims(&self, node: &Node<'_>, [a, b, c]: [i64; 3]) -> Vec<Dim> {
        vec![self.batch, node.cx().dim(a), node.cx().dim(b), node.cx().dim(c)]
    }
}
