//! Classes that trees vote for: `TreeEnsembleClassifier`.
//!
//! ```text
//! s[n, k] = base[k] + sum of what the leaves of row n give to class k
//! mostly:                             label[n] = labels[the greatest of s[n, k]], scores = transform(s)
//! two classes, and votes for one, c:  label[n] = labels[s[n, c] > limit], scores = [1 - s, s] or [-s, s] of c = 0
//! ```
//!
//! Votes for one of two classes are about the second one, whichever of them they name: exporters name the first one, and of such
//! votes alone the scores are made so. They are probabilities where none is below zero, with a limit of 0.5, and differences around
//! zero otherwise.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, sliced};

use super::attributes::{floats_or_tensor, table};
use super::forest::Forest;
use super::labels::{label_of_greatest, label_of_two, labels};
use super::post_transform::{Single, is_above, of_two, post_transform, transformed};
use super::tree_nodes;

/// `TreeEnsembleClassifier`: labels, and scores for each class.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "TreeEnsembleClassifier", since = 1)]
fn classifier(node: &mut Node<'_>) -> Outputs {
    let labels = labels(node, "classlabels_int64s")?;
    let mut forest = tree_nodes::forest(node, "class", labels.len() as i64)?;
    forest.base = floats_or_tensor(node, "base_values")?;
    match forest.base.len() {
        // One number is that of the only score there is.
        1 => forest.base.resize(labels.len(), 0.0),
        2 if only_class(&forest).is_some() => {
            return unsupported("two base values where all votes are for one class");
        }
        _ => {}
    }
    let transform = post_transform(node)?;
    let (x, dtype) = tree_nodes::rows(node)?;
    let leaves = forest.leaves(node, x, dtype)?;
    let scores = forest.gathered(node, leaves, dtype, "SUM")?;
    let (label, scores) = match (labels.as_slice(), only_class(&forest)) {
        (&[no, yes], Some(class)) => {
            let score = sliced(node, scores, 1, [class, class + 1])?;
            let (limit, single) = meaning(&forest);
            let is_second = is_above(node, score, limit)?;
            let scores = match class {
                0 => of_two(node, score, single, transform)?,
                _ => transformed(node, scores, transform)?,
            };
            (label_of_two(node, is_second, [no, yes])?, scores)
        }
        (&[_], _) => {
            // A class alone is told apart from what is not in it.
            let is_inside = is_above(node, scores, 0.0)?;
            (label_of_two(node, is_inside, [0, 1])?, transformed(node, scores, transform)?)
        }
        _ => {
            let candidates = candidates(node, &forest, scores, dtype)?;
            let label = label_of_greatest(node, candidates, &labels)?;
            (label, transformed(node, scores, transform)?)
        }
    };
    Ok(vec![label, cast_to(node, scores, DType::F32)?])
}

/// The class that all votes are for, if there is one.
fn only_class(forest: &Forest) -> Option<i64> {
    let class = forest.votes.first()?.target;
    forest.votes.iter().all(|vote| vote.target == class).then_some(class)
}

/// The scores, below all numbers for classes that nothing tells of: neither a vote nor a base.
fn candidates(
    node: &mut Node<'_>,
    forest: &Forest,
    scores: Value,
    dtype: DType,
) -> Result<Value, Problem> {
    let mut least = vec![f64::NEG_INFINITY; forest.targets as usize];
    for vote in &forest.votes {
        least[vote.target as usize] = 0.0;
    }
    if !forest.base.is_empty() || least.iter().all(|&least| least == 0.0) {
        return Ok(scores);
    }
    let least = table(node, &least, &[forest.targets], dtype)?;
    node.apply("add", &[scores, least])
}

/// Above which score the second class is meant, and what the score is.
fn meaning(forest: &Forest) -> (f64, Single) {
    match forest.votes.iter().all(|vote| vote.weight >= 0.0) {
        true => (0.5, Single::Probability),
        false => (0.0, Single::Difference),
    }
}
