//! `Attention`, `QAttention` and `MultiHeadAttention`.

use tenon_plugin_api::rule::prelude::*;

use crate::heads::{Scores, attend, merge, split, unless};
use crate::quantized::{spread, without_zero};
use crate::steps::{absent, cast_to, extent_of, joined, needed, only, places, reshape_to, sliced};

/// `Attention`: queries, keys and values are one product of the input; the past of keys and values lies in one tensor.
#[rule(import.onnx, domain = "com.microsoft", key = "Attention")]
fn attention(node: &mut Node<'_>) -> Outputs {
    only(node, "do_rotary", 0)?;
    only(node, "past_present_share_buffer", 0)?;
    node.ignore("rotary_embedding_dim");
    absent(node, 6, "a length of the past beside it")?;
    let (x, weights) = (node.input(0)?, node.input(1)?);
    let width = extent_of(node, node.dims(weights)?[1], "width of the weights")?;
    let sizes = match node.ints("qkv_hidden_sizes")?.as_deref() {
        None => [width / 3; 3],
        Some(&[q, k, v]) => [q, k, v],
        Some(sizes) => return invalid(format!("its attribute `qkv_hidden_sizes` is {sizes:?}")),
    };
    let mut all = node.apply("matmul", &[x, weights])?;
    if let Some(bias) = node.optional(2) {
        all = node.apply("add", &[all, bias])?;
    }
    let [mask, past, bias] = [3, 4, 5].map(|index| node.optional(index));
    of_one_product(node, all, sizes, [mask, past, bias])
}

/// `QAttention`: input and weights are bytes on scales.
#[rule(import.onnx, domain = "com.microsoft", key = "QAttention")]
fn quantized_attention(node: &mut Node<'_>) -> Outputs {
    only(node, "do_rotary", 0)?;
    only(node, "past_present_share_buffer", 0)?;
    let (x, weights) = (without_zero(node, 0, 6)?, without_zero(node, 1, 7)?);
    let width = extent_of(node, node.dims(weights)?[1], "width of the weights")?;
    let sums = node.apply("matmul", &[x, weights])?;
    let sums = cast_to(node, sums, DType::F32)?;
    let (of_x, of_weights, bias) = (spread(node, 3)?, spread(node, 4)?, node.input(2)?);
    let scale = node.apply("multiply", &[of_x, of_weights])?;
    let all = node.apply("multiply", &[sums, scale])?;
    let all = node.apply("add", &[all, bias])?;
    let [mask, past] = [5, 8].map(|index| node.optional(index));
    of_one_product(node, all, [width / 3; 3], [mask, past, None])
}

/// Attention of queries, keys and values that are columns of one product, with a mask, the past, and what is added to scores.
fn of_one_product(
    node: &mut Node<'_>,
    all: Value,
    sizes: [i64; 3],
    [mask, past, bias]: [Option<Value>; 3],
) -> Outputs {
    let heads = needed(node, "num_heads")?;
    let mut first = 0;
    let mut parts = Vec::with_capacity(3);
    for size in sizes {
        let part = sliced(node, all, 2, [first, first + size])?;
        parts.push(split(node, part, heads)?);
        first += size;
    }
    let &[query, mut key, mut value] = parts.as_slice() else { return invalid("its parts") };
    if let Some(past) = past {
        let past = node.call("split", &[past], &[("sections", 2.into()), ("axis", 0.into())])?;
        let past = node.items(past)?;
        let dims = node.dims(past[0])?;
        for (at, now) in [&mut key, &mut value].into_iter().enumerate() {
            let past = reshape_to(node, past[at], &dims[1..])?;
            *now = joined(node, &[past, *now], 2)?;
        }
    }
    let mut how = scores(node)?;
    let sequence = Sequence::of(node, query, key)?;
    if let Some(mask) = mask {
        how.added.push(sequence.masked(node, mask)?);
    }
    if node.flag("unidirectional", false)? {
        how.added.push(sequence.causal(node)?);
    }
    how.added.extend(bias);
    let y = attend(node, [query, key, value], &how)?;
    let y = merge(node, y)?;
    if node.output_count() < 2 {
        return Ok(vec![y]);
    }
    let mut both = Vec::with_capacity(2);
    for part in [key, value] {
        both.push(node.call("expand_dims", &[part], &[("axis", vec![0].into())])?);
    }
    Ok(vec![y, joined(node, &both, 0)?])
}

/// `MultiHeadAttention`: queries, keys and values are given, by themselves or one behind the other for each head.
#[rule(import.onnx, domain = "com.microsoft", key = "MultiHeadAttention")]
fn multi_head(node: &mut Node<'_>) -> Outputs {
    absent(node, 8, "a length of the past beside it")?;
    absent(node, 9, "beams of the past")?;
    let heads = needed(node, "num_heads")?;
    let bias = node.optional(3);
    let [query, mut key, mut value] = given(node, heads, bias)?;
    for (index, now) in [(6, &mut key), (7, &mut value)] {
        if let Some(past) = node.optional(index) {
            *now = joined(node, &[past, *now], 2)?;
        }
    }
    let mut how = scores(node)?;
    let sequence = Sequence::of(node, query, key)?;
    if let Some(mask) = node.optional(4) {
        how.added.push(sequence.masked(node, mask)?);
    }
    if node.flag("unidirectional", false)? {
        how.added.push(sequence.causal(node)?);
    }
    how.added.extend(node.optional(5));
    let y = attend(node, [query, key, value], &how)?;
    Ok(vec![merge(node, y)?, key, value])
}

/// Queries, keys and values as `[batch, heads, sequence, size]`, with a bias that lies one behind the other.
fn given(node: &mut Node<'_>, heads: i64, bias: Option<Value>) -> Result<[Value; 3], Problem> {
    let query = node.input(0)?;
    let dims = node.dims(query)?;
    let parts: [Value; 3] = match (node.optional(1), node.optional(2), dims.len()) {
        (None, None, 5) => packed(node, query, &dims, 3)?[..].try_into().map_err(wrong)?,
        (Some(both), None, 3) if node.dims(both)?.len() == 5 => {
            let dims = node.dims(both)?;
            let both = packed(node, both, &dims, 2)?;
            [query, both[0], both[1]]
        }
        (Some(key), Some(value), 3) => [query, key, value],
        _ => return unsupported("queries, keys and values in this form"),
    };
    let mut first = 0;
    let mut all = Vec::with_capacity(3);
    for part in parts {
        // Keys and values of something else come as heads.
        if node.dims(part)?.len() == 4 {
            all.push(part);
            continue;
        }
        let mut part = part;
        if let Some(bias) = bias {
            let width = extent_of(node, node.dims(part)?[2], "width of a part")?;
            let own = sliced(node, bias, 0, [first, first + width])?;
            part = node.apply("add", &[part, own])?;
            first += width;
        }
        all.push(split(node, part, heads)?);
    }
    all[..].try_into().map_err(wrong)
}

fn wrong(_: std::array::TryFromSliceError) -> Problem {
    Problem::Invalid("queries, keys and values are three".into())
}

/// Parts of `[batch, sequence, heads, parts, size]`, each as `[batch, sequence, heads * size]`.
fn packed(node: &mut Node<'_>, x: Value, dims: &[Dim], count: i64) -> Result<Vec<Value>, Problem> {
    let hidden = node.cx().dim_mul(dims[2], dims[4]);
    let mut parts = Vec::new();
    for at in 0..count {
        let part = sliced(node, x, 3, [at, at + 1])?;
        parts.push(reshape_to(node, part, &[dims[0], dims[1], hidden])?);
    }
    Ok(parts)
}

/// The scale that the attributes say.
fn scores(node: &Node<'_>) -> Result<Scores, Problem> {
    let scale = node.float("scale")?.filter(|&scale| scale != 0.0).map(f64::from);
    Ok(Scores { scale, softcap: 0.0, added: Vec::new(), sink: None })
}

/// How many queries and keys there are.
struct Sequence {
    batch: Dim,
    queries: Dim,
    keys: Dim,
    /// What is added for a key that a mask leaves out.
    filter: f64,
}

impl Sequence {
    fn of(node: &Node<'_>, query: Value, key: Value) -> Result<Self, Problem> {
        let (of_queries, of_keys) = (node.dims(query)?, node.dims(key)?);
        let filter = node.float_or("mask_filter_value", -10000.0)?;
        Ok(Self { batch: of_queries[0], queries: of_queries[2], keys: of_keys[2], filter })
    }

    /// What is added for keys that a mask leaves out, in any of its forms: of `[batch, heads, queries, keys]`.
    fn masked(&self, node: &mut Node<'_>, mask: Value) -> Result<Value, Problem> {
        let one = node.cx().dim(1);
        let dims = node.dims(mask)?;
        let is_seen = match *dims.as_slice() {
            // How many keys there are in each row of the batch.
            [rows] if rows == self.batch => {
                let ends = self.of_rows(node, mask)?;
                let at = places(node, self.keys)?;
                node.apply("less", &[at, ends])?
            }
            // Where the keys end in each row of the batch, and where they begin.
            [both] if both == node.cx().dim_mul(self.batch, node.cx().dim(2)) => {
                let rows = extent_of(node, self.batch, "rows of the batch")?;
                let [ends, begins] = [[0, rows], [rows, 2 * rows]];
                let [ends, begins] = [sliced(node, mask, 0, ends)?, sliced(node, mask, 0, begins)?];
                let [ends, begins] = [self.of_rows(node, ends)?, self.of_rows(node, begins)?];
                let at = places(node, self.keys)?;
                let is_before_end = node.apply("less", &[at, ends])?;
                let has_begun = node.apply("greater_equal", &[at, begins])?;
                node.apply("logical_and", &[is_before_end, has_begun])?
            }
            [_, keys] if keys == self.keys => {
                let mask = reshape_to(node, mask, &[dims[0], one, one, keys])?;
                self.is_set(node, mask)?
            }
            [_, queries, keys] => {
                let mask = reshape_to(node, mask, &[dims[0], one, queries, keys])?;
                self.is_set(node, mask)?
            }
            _ => return unsupported("a mask of this form"),
        };
        unless(node, is_seen, self.filter)
    }

    /// A number for each row of the batch.
    fn of_rows(&self, node: &mut Node<'_>, numbers: Value) -> Result<Value, Problem> {
        let one = node.cx().dim(1);
        let numbers = cast_to(node, numbers, DType::I64)?;
        reshape_to(node, numbers, &[self.batch, one, one, one])
    }

    fn is_set(&self, node: &mut Node<'_>, mask: Value) -> Result<Value, Problem> {
        let zero = node.scalar_like(mask, 0.0)?;
        node.apply("greater", &[mask, zero])
    }

    /// What is added for keys behind the query.
    fn causal(&self, node: &mut Node<'_>) -> Result<Value, Problem> {
        let past = node.cx().dim_sub(self.keys, self.queries);
        let past = node.known(&Known::scalar(DType::I64, past))?;
        let at = places(node, self.queries)?;
        let last = node.apply("add", &[at, past])?;
        let one = node.cx().dim(1);
        let last = reshape_to(node, last, &[self.queries, one])?;
        let keys = places(node, self.keys)?;
        let is_seen = node.apply("less_equal", &[keys, last])?;
        unless(node, is_seen, f64::from(f32::MIN))
    }
}
