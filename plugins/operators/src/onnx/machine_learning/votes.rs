//! What leaves give to targets, and what all trees give together.
//!
//! ```text
//! y[n, k] = base[k] + sum over t of weight[leaf[n, t], k]
//! y[n, k] = base[k] + sum over t of weight[leaf[n, t]] * (the only target of tree t is k)
//! ```
//!
//! The second form is for several targets of which each tree has one, as boosted trees have one class each: it reads one number for
//! each tree.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, not_among};

use super::attributes::{constant, table};
use super::forest::{Forest, looked_up};

pub(super) const AGGREGATES: [&str; 4] = ["AVERAGE", "SUM", "MIN", "MAX"];

/// What a leaf gives to a target.
pub(super) struct Vote {
    pub(super) leaf: usize,
    pub(super) target: i64,
    pub(super) weight: f64,
}

impl Forest {
    /// What the leaves of each row give to the targets together.
    pub(super) fn gathered(
        &self,
        node: &mut Node<'_>,
        leaves: Value,
        dtype: DType,
        aggregate: &str,
    ) -> Result<Value, Problem> {
        let mut y = match aggregate {
            "SUM" | "AVERAGE" => match self.target_of_trees() {
                Some(targets) => self.summed_by_target(node, leaves, dtype, &targets)?,
                None => self.summed(node, leaves, dtype)?,
            },
            "MIN" => self.extreme(node, leaves, dtype, "min")?,
            "MAX" => self.extreme(node, leaves, dtype, "max")?,
            other => return not_among("aggregate_function", other, &AGGREGATES),
        };
        if aggregate == "AVERAGE" {
            let count = node.scalar(dtype, self.roots.len() as f64)?;
            y = node.apply("divide", &[y, count])?;
        }
        if !self.base.is_empty() {
            let base = table(node, &self.base, &[self.targets], dtype)?;
            y = node.apply("add", &[y, base])?;
        }
        Ok(y)
    }

    /// A number for each node and target, made of the votes there are, and whether there is one.
    fn weights(
        &self,
        node: &mut Node<'_>,
        none: f64,
        joined: impl Fn(f64, f64) -> f64,
    ) -> Result<(Vec<f64>, Vec<i64>), Problem> {
        let (count, targets) = (self.modes.len(), self.targets as usize);
        if !node.spend(count.saturating_mul(targets).saturating_mul(size_of::<f64>())) {
            return unsupported(format!("{count} nodes with {targets} targets"));
        }
        let (mut weights, mut is_there) = (vec![none; count * targets], vec![0; count * targets]);
        for vote in &self.votes {
            let at = vote.leaf * targets + vote.target as usize;
            weights[at] = joined(weights[at], vote.weight);
            is_there[at] = 1;
        }
        Ok((weights, is_there))
    }

    fn summed(&self, node: &mut Node<'_>, leaves: Value, dtype: DType) -> Result<Value, Problem> {
        let (weights, _) = self.weights(node, 0.0, |a, b| a + b)?;
        let weights = table(node, &weights, &[self.modes.len() as i64, self.targets], dtype)?;
        let each = looked_up(node, weights, leaves)?;
        node.call("sum", &[each], &along_trees())
    }

    /// The least or the greatest of what is given to a target, and zero where nothing is.
    fn extreme(
        &self,
        node: &mut Node<'_>,
        leaves: Value,
        dtype: DType,
        op: &'static str,
    ) -> Result<Value, Problem> {
        let (weights, is_there) = match op {
            "min" => self.weights(node, f64::INFINITY, f64::min)?,
            _ => self.weights(node, f64::NEG_INFINITY, f64::max)?,
        };
        let shape = [self.modes.len() as i64, self.targets];
        let weights = table(node, &weights, &shape, dtype)?;
        let each = looked_up(node, weights, leaves)?;
        let y = node.call(op, &[each], &along_trees())?;
        let is_there = constant(node, &is_there, &shape)?;
        let is_there = looked_up(node, is_there, leaves)?;
        let is_there = node.call("max", &[is_there], &along_trees())?;
        let is_there = cast_to(node, is_there, DType::BOOL)?;
        let zero = node.scalar(dtype, 0.0)?;
        node.apply("where", &[is_there, y, zero])
    }

    fn summed_by_target(
        &self,
        node: &mut Node<'_>,
        leaves: Value,
        dtype: DType,
        target_of: &[usize],
    ) -> Result<Value, Problem> {
        let (trees, targets) = (target_of.len(), self.targets as usize);
        if !node.spend(trees.saturating_mul(targets).saturating_mul(size_of::<f64>())) {
            return unsupported(format!("{trees} trees with {targets} targets"));
        }
        let mut weights = vec![0.0; self.modes.len()];
        for vote in &self.votes {
            weights[vote.leaf] += vote.weight;
        }
        let mut is_of = vec![0.0; trees * targets];
        for (tree, target) in target_of.iter().enumerate() {
            is_of[target * trees + tree] = 1.0;
        }
        let weights = table(node, &weights, &[self.modes.len() as i64], dtype)?;
        let each = looked_up(node, weights, leaves)?;
        let is_of = table(node, &is_of, &[self.targets, trees as i64], dtype)?;
        node.apply("nn.dense", &[each, is_of])
    }

    /// Of each tree the only target that its leaves give anything to; none where there is one target, or a tree has several.
    fn target_of_trees(&self) -> Option<Vec<usize>> {
        // A product with zero is zero of numbers alone.
        let is_number = |vote: &Vote| (vote.weight as f32).is_finite();
        // Probabilities of forests are often as far on one side as on the other, and which one is taken for the greater depends on
        // the order in which they are added: that of the trees.
        let are_probabilities = self.votes.iter().all(|vote| vote.weight >= 0.0);
        if self.targets == 1 || are_probabilities || !self.votes.iter().all(is_number) {
            return None;
        }
        let tree_of = self.tree_of_nodes()?;
        let mut targets = vec![None; self.roots.len()];
        for vote in &self.votes {
            let Some(tree) = tree_of[vote.leaf] else { continue };
            let target = vote.target as usize;
            if *targets[tree].get_or_insert(target) != target {
                return None;
            }
        }
        // A tree without votes gives zero to any.
        Some(targets.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// The tree that each node is in; none where it is in several.
    fn tree_of_nodes(&self) -> Option<Vec<Option<usize>>> {
        let mut tree_of = vec![None; self.modes.len()];
        for (tree, &root) in self.roots.iter().enumerate() {
            let mut open = vec![root as usize];
            while let Some(at) = open.pop() {
                match tree_of[at] {
                    Some(known) if known == tree => continue,
                    Some(_) => return None,
                    None => tree_of[at] = Some(tree),
                }
                open.extend([self.trues[at] as usize, self.falses[at] as usize]);
            }
        }
        Some(tree_of)
    }
}

/// The attributes of a reduction over trees.
fn along_trees() -> [(&'static str, AttrValue); 2] {
    [("axis", vec![1].into()), ("keepdims", false.into())]
}
