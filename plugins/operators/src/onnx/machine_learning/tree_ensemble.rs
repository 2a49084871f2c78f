//! Trees whose leaves are counted by themselves: `TreeEnsemble`.
//!
//! ```text
//! nodes_trueleafs[i] = 0        the next node is nodes_truenodeids[i]
//! nodes_trueleafs[i] = 1        it is that leaf, of weight leaf_weights[nodes_truenodeids[i]]
//! ```

use tenon_plugin_api::rule::prelude::*;

use super::attributes::{list, numbers, numbers_if_any};
use super::forest::Forest;
use super::post_transform::{TRANSFORMS, transformed};
use super::tree_nodes::tracks;
use super::votes::{AGGREGATES, Vote};

/// `TreeEnsemble`: nodes and leaves are counted each by themselves.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "TreeEnsemble", since = 5)]
fn tree_ensemble(node: &mut Node<'_>) -> Outputs {
    node.ignore("nodes_hitrates");
    let splits = numbers(node, "nodes_splits")?;
    let modes: Vec<i64> = numbers(node, "nodes_modes")?.iter().map(|&mode| mode as i64).collect();
    let (inner, weights) = (splits.len(), numbers(node, "leaf_weights")?);
    let children = |to: &str, kind: &str| -> Result<Vec<i64>, Problem> {
        let (to, is_leaf) = (list(node, to, inner)?, list(node, kind, inner)?);
        let place = |(to, is_leaf): (i64, i64)| match is_leaf {
            0 => to,
            _ => to.saturating_add(inner as i64),
        };
        Ok(to.into_iter().zip(is_leaf).map(place).collect())
    };
    let trues = children("nodes_truenodeids", "nodes_trueleafs")?;
    let falses = children("nodes_falsenodeids", "nodes_falseleafs")?;
    let targets = list(node, "leaf_targetids", weights.len())?;
    let votes = (inner..).zip(targets).zip(weights).map(|((leaf, target), weight)| Vote {
        leaf,
        target,
        weight,
    });
    let mut forest = Forest {
        roots: node.ints("tree_roots")?.unwrap_or_default(),
        features: list(node, "nodes_featureids", inner)?,
        splits,
        modes,
        tracks: tracks(node, inner)?,
        trues,
        falses,
        sets: sets(&numbers_if_any(node, "membership_values")?.unwrap_or_default()),
        votes: votes.collect(),
        targets: node.int_or("n_targets", 1)?,
        base: Vec::new(),
    };
    let leaves = forest.votes.len();
    forest.add_leaves(leaves);
    let (aggregate, transform) =
        (node.int_or("aggregate_function", 1)?, node.int_or("post_transform", 0)?);
    let named = |names: &[&'static str], number: i64| {
        usize::try_from(number).ok().and_then(|number| names.get(number).copied())
    };
    let (Some(aggregate), Some(transform)) =
        (named(&AGGREGATES, aggregate), named(&TRANSFORMS, transform))
    else {
        return invalid(format!("its aggregate is {aggregate}, its transform {transform}"));
    };
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let leaves = forest.leaves(node, x, dtype)?;
    let scores = forest.gathered(node, leaves, dtype, aggregate)?;
    Ok(vec![transformed(node, scores, transform)?])
}

/// Sets that stand one behind the other, each of which ends in what is no number.
fn sets(numbers: &[f64]) -> Vec<Vec<f64>> {
    let mut parts: Vec<Vec<f64>> = numbers.split(|number| number.is_nan()).map(Vec::from).collect();
    // Behind the last end stands nothing.
    if parts.last().is_some_and(Vec::is_empty) {
        parts.pop();
    }
    parts
}
