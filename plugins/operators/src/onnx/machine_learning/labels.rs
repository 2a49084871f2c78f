//! The labels of classes, which are whole numbers here.

use tenon_plugin_api::rule::prelude::*;

use super::attributes::{constant, no_strings};

/// The labels in attribute `name`; those that are strings are refused.
pub(super) fn labels(node: &Node<'_>, name: &str) -> Result<Vec<i64>, Problem> {
    no_strings(node, "classlabels_strings", "train the model on classes that are whole numbers")?;
    match node.ints(name)? {
        Some(labels) if !labels.is_empty() => Ok(labels),
        _ => invalid(format!("it has no attribute `{name}`")),
    }
}

/// The labels of the classes with the greatest scores, of equal ones the first.
pub(super) fn label_of_greatest(
    node: &mut Node<'_>,
    scores: Value,
    labels: &[i64],
) -> Result<Value, Problem> {
    let at = node.call("argmax", &[scores], &[("axis", 1.into())])?;
    // Classes are mostly numbered.
    if labels.iter().copied().eq(0..labels.len() as i64) {
        return Ok(at);
    }
    let labels = constant(node, labels, &[labels.len() as i64])?;
    node.call("take", &[labels, at], &[("axis", 0.into())])
}

/// One of two labels for each row of a column of truth values: the second one where it holds.
pub(super) fn label_of_two(
    node: &mut Node<'_>,
    holds: Value,
    [no, yes]: [i64; 2],
) -> Result<Value, Problem> {
    let holds = node.call("squeeze", &[holds], &[("axis", vec![1].into())])?;
    let (no, yes) = (constant(node, &[no], &[])?, constant(node, &[yes], &[])?);
    node.apply("where", &[holds, yes, no])
}
