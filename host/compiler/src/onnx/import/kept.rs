//! What a loop carries and does not change.
//!
//! ```text
//! y = Loop(m, , w)                               %y = %w
//!   body: (i, c, v) gives (c, Identity(v))  =>   and the body reads %w
//! ```
//!
//! Loops of TensorFlow carry their weights so. What is carried has two places that trips write in turn; what stands around the
//! body is not written at all, and is known there where it is known.

use std::collections::HashMap;

use crate::onnx::proto::GraphProto;

use super::scope::standard_domain;

/// For each of the `count` values that a body carries, whether a trip gives it as it was.
pub(super) fn are_kept(graph: &GraphProto<'_>, count: usize) -> Vec<bool> {
    let inputs = || graph.input.iter().skip(2).take(count).map(|input| input.name);
    // What each name is another one for; the nodes stand in order.
    let mut origin: HashMap<&str, &str> = inputs().map(|name| (name, name)).collect();
    for node in &graph.node {
        if node.op_type != "Identity" || !standard_domain(node.domain).is_empty() {
            continue;
        }
        if let (&[from], &[to]) = (&node.input[..], &node.output[..])
            && let Some(&first) = origin.get(from)
        {
            origin.insert(to, first);
        }
    }
    let outputs = graph.output.iter().skip(1);
    inputs().zip(outputs).map(|(name, output)| origin.get(output.name) == Some(&name)).collect()
}
