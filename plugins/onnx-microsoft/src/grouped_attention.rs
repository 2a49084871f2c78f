//! `GroupQueryAttention`, which decoders consist of: heads of the query share those of keys and values, which are kept.
//!
//! New keys and values stand behind those that are kept, so what is kept afterwards is as long as both together.

use tenon_plugin_api::rule::prelude::*;

use crate::heads::{Scores, attend, merge, split, unless};
use crate::normalizations::rms_norm;
use crate::rotary_embedding::turned;
use crate::steps::{absent, cast_to, extent_of, joined, needed, only, places, reshape_to, sliced};

/// `GroupQueryAttention`.
#[rule(import.onnx, domain = "com.microsoft", key = "GroupQueryAttention")]
fn group_query(node: &mut Node<'_>) -> Outputs {
    for (name, value) in [("kv_cache_bit_width", 0), ("sliding_window_cache", 0), ("qk_output", 0)]
    {
        only(node, name, value)?;
    }
    for name in ["k_quant_type", "v_quant_type"] {
        match node.text(name, "NONE")?.as_str() {
            "NONE" => {}
            other => return unsupported(format!("its attribute `{name}` is {other:?}")),
        }
    }
    absent(node, 12, "quantized keys")?;
    absent(node, 13, "quantized values")?;
    let (heads, shared) = (needed(node, "num_heads")?, needed(node, "kv_num_heads")?);
    let [query, key, value] = parts(node, heads, shared)?;
    let mut query = split(node, query, heads)?;
    let (mut key, mut value) = (split(node, key, shared)?, split(node, value, shared)?);
    let epsilon = node.float_or("qk_norm_epsilon", 1e-6)?;
    for (index, x) in [(14, &mut query), (15, &mut key)] {
        if let Some(gamma) = node.optional(index) {
            *x = rms_norm(node, *x, gamma, epsilon)?;
        }
    }
    let past = match node.optional(3) {
        Some(past) => node.dims(past)?[2],
        None => node.cx().dim(0),
    };
    let of = node.dims(query)?;
    let one = node.cx().dim(1);
    let at = places(node, of[2])?;
    let first = node.known(&Known::scalar(DType::I64, past))?;
    let at = node.apply("add", &[at, first])?;
    if node.flag("do_rotary", false)? {
        let positions = match node.optional(9) {
            Some(positions) => positions,
            None => reshape_to(node, at, &[one, of[2]])?,
        };
        let tables = [node.input(7)?, node.input(8)?];
        let interleaved = node.flag("rotary_interleaved", false)?;
        query = turned(node, query, positions, tables, interleaved)?;
        key = turned(node, key, positions, tables, interleaved)?;
    }
    for (index, now) in [(3, &mut key), (4, &mut value)] {
        if let Some(past) = node.optional(index) {
            *now = joined(node, &[past, *now], 2)?;
        }
    }
    let keys = node.dims(key)?[2];
    let mut how = scores(node, heads)?;
    how.added.push(mask(node, at, [of[0], of[2], keys])?);
    how.added.extend(node.optional(10));
    let y = attend(node, [query, key, value], &how)?;
    Ok(vec![merge(node, y)?, key, value])
}

/// Queries, keys and values, which may be one tensor.
fn parts(node: &mut Node<'_>, heads: i64, shared: i64) -> Result<[Value; 3], Problem> {
    let query = node.input(0)?;
    if let (Some(key), Some(value)) = (node.optional(1), node.optional(2)) {
        return Ok([query, key, value]);
    }
    let width = extent_of(node, node.dims(query)?[2], "width of its input")?;
    let size = width / (heads + 2 * shared).max(1);
    let ends = [0, heads * size, (heads + shared) * size, (heads + 2 * shared) * size];
    let part = |at: usize| [ends[at], ends[at + 1]];
    let [a, b, c] = [0, 1, 2].map(|at| sliced(node, query, 2, part(at)));
    Ok([a?, b?, c?])
}

/// The scale, the cap and the sink that the node says.
fn scores(node: &mut Node<'_>, heads: i64) -> Result<Scores, Problem> {
    let scale = node.float("scale")?.filter(|&scale| scale != 0.0).map(f64::from);
    let softcap = node.float_or("softcap", 0.0)?;
    let one = node.cx().dim(1);
    let sink = match (node.optional(11), node.int_or("smooth_softmax", 0)?) {
        (Some(sink), _) => {
            let heads = node.cx().dim(heads);
            Some(reshape_to(node, sink, &[one, heads, one, one])?)
        }
        (None, 1) => {
            let zero = node.scalar(DType::F32, 0.0)?;
            Some(reshape_to(node, zero, &[one; 4])?)
        }
        _ => None,
    };
    Ok(Scores { scale, softcap, added: Vec::new(), sink })
}

/// What is added for keys that a query does not see: those behind it, those too far before it, and those that a row of the batch
/// has not.
fn mask(
    node: &mut Node<'_>,
    at: Value,
    [batch, queries, keys]: [Dim; 3],
) -> Result<Value, Problem> {
    let one = node.cx().dim(1);
    let key = places(node, keys)?;
    let counts = node.input(5)?;
    let counts = cast_to(node, counts, DType::I64)?;
    let counts = reshape_to(node, counts, &[batch, one, one, one])?;
    let mut is_seen = node.apply("less_equal", &[key, counts])?;
    let at = reshape_to(node, at, &[queries, one])?;
    if node.flag("causal", true)? {
        let is_before = node.apply("less_equal", &[key, at])?;
        is_seen = node.apply("logical_and", &[is_seen, is_before])?;
    }
    let window = node.int_or("local_window_size", -1)?;
    if window > 0 {
        let distance = node.apply("subtract", &[at, key])?;
        let window = node.scalar_like(distance, window as f64)?;
        let is_near = node.apply("less", &[distance, window])?;
        is_seen = node.apply("logical_and", &[is_seen, is_near])?;
    }
    unless(node, is_seen, f64::from(f32::MIN))
}
