//! Trees whose leaves are nodes, each of which belongs to a tree: those of regressors and classifiers.
//!
//! ```text
//! nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_modes = [BRANCH_LEQ, LEAF, LEAF],
//! target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0], target_weights = [2.0, 3.0]
//!     =>  a forest of one root, and two votes
//! ```

use std::collections::HashMap;

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, not_among, wide};

use super::attributes::{floats_or_tensor, list};
use super::forest::{Forest, LEAF, MODES};
use super::votes::Vote;

/// The trees of a node, whose leaves vote as the attributes say that have this prefix.
pub(super) fn forest(node: &mut Node<'_>, prefix: &str, targets: i64) -> Result<Forest, Problem> {
    node.ignore("nodes_hitrates");
    node.ignore("nodes_hitrates_as_tensor");
    let trees = node.ints("nodes_treeids")?.unwrap_or_default();
    let count = trees.len();
    let ids = list(node, "nodes_nodeids", count)?;
    let mut places = HashMap::with_capacity(count);
    places.extend(trees.iter().copied().zip(ids.iter().copied()).zip(0i64..));
    if places.len() < count {
        return invalid("two of its nodes have one number in one tree");
    }
    let modes = modes(&node.texts("nodes_modes")?, count)?;
    // A leaf leads nowhere, whatever its numbers are.
    let children = |name: &str| -> Result<Vec<i64>, Problem> {
        let to = list(node, name, count)?;
        let place = |at: usize| match modes[at] {
            LEAF => at as i64,
            _ => places.get(&(trees[at], to[at])).copied().unwrap_or(-1),
        };
        Ok((0..count).map(place).collect())
    };
    let (trues, falses) = (children("nodes_truenodeids")?, children("nodes_falsenodeids")?);
    Ok(Forest {
        roots: (0..count).filter(|&at| ids[at] == 0).map(|at| at as i64).collect(),
        features: list(node, "nodes_featureids", count)?,
        splits: floats_or_tensor(node, "nodes_values")?,
        tracks: tracks(node, count)?,
        votes: votes(node, prefix, &places)?,
        base: Vec::new(),
        sets: Vec::new(),
        targets,
        modes,
        trues,
        falses,
    })
}

/// The rows that trees are asked about, and the type that they compare in.
pub(super) fn rows(node: &mut Node<'_>) -> Result<(Value, DType), Problem> {
    let x = node.input(0)?;
    let dtype = wide(node.dtype(x)?);
    Ok((cast_to(node, x, dtype)?, dtype))
}

/// Of each node whether what is no number goes where a comparison that holds leads.
pub(super) fn tracks(node: &Node<'_>, count: usize) -> Result<Vec<i64>, Problem> {
    match node.has("nodes_missing_value_tracks_true") {
        true => list(node, "nodes_missing_value_tracks_true", count),
        false => Ok(vec![0; count]),
    }
}

fn modes(names: &[String], count: usize) -> Result<Vec<i64>, Problem> {
    if names.len() != count {
        return invalid(format!("it has {} modes for {count} nodes", names.len()));
    }
    let known: Vec<&str> = MODES.iter().copied().chain(["LEAF"]).collect();
    let mode = |name: &String| match known.iter().position(|known| known == name) {
        Some(place) if place < MODES.len() => Ok(place as i64),
        Some(_) => Ok(LEAF),
        None => not_among("nodes_modes", name, &known),
    };
    names.iter().map(mode).collect()
}

/// What the leaves give.
fn votes(
    node: &mut Node<'_>,
    prefix: &str,
    places: &HashMap<(i64, i64), i64>,
) -> Result<Vec<Vote>, Problem> {
    let weights = floats_or_tensor(node, &format!("{prefix}_weights"))?;
    let own = |name: &str| list(node, &format!("{prefix}_{name}"), weights.len());
    let (trees, leaves, targets) = (own("treeids")?, own("nodeids")?, own("ids")?);
    let mut votes = Vec::with_capacity(weights.len());
    for (at, weight) in weights.into_iter().enumerate() {
        let Some(&leaf) = places.get(&(trees[at], leaves[at])) else {
            return invalid(format!("tree {} has no node {}", trees[at], leaves[at]));
        };
        votes.push(Vote { leaf: leaf as usize, target: targets[at], weight });
    }
    Ok(votes)
}
