//! The operators that exist, by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{OpDef, OpError};

static TABLE: LazyLock<HashMap<&'static str, &'static OpDef, rustc_hash::FxBuildHasher>> =
    LazyLock::new(|| inventory::iter::<OpDef>().map(|op| (op.name, op)).collect());

/// The operator called `name`; the error lists the nearest names.
pub fn get(name: &str) -> Result<&'static OpDef, OpError> {
    match TABLE.get(name) {
        Some(op) => Ok(op),
        None => Err(OpError::UnknownOp { name: name.into(), nearest: nearest(name) }),
    }
}

/// The operator called `name`, if there is one.
pub fn find(name: &str) -> Option<&'static OpDef> {
    TABLE.get(name).copied()
}

/// All operators in ascending order of their names.
pub fn all() -> Vec<&'static OpDef> {
    let mut all: Vec<&'static OpDef> = TABLE.values().copied().collect();
    all.sort_unstable_by_key(|op| op.name);
    all
}

/// Up to three names that `name` may be meant to be, best first.
fn nearest(name: &str) -> Vec<&'static str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let limit = (name.len() / 3).max(1);
    let mut near: Vec<(usize, &'static str)> = TABLE
        .keys()
        .filter_map(|&known| {
            let distance = edit_distance(name, known).min(edit_distance(&last(name), &last(known)));
            (distance <= limit).then_some((distance, known))
        })
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, known)| known).collect()
}

/// Insertions, deletions and replacements that lead from `a` to `b`; long texts are far from all.
fn edit_distance(a: &str, b: &str) -> usize {
    if a.len().max(b.len()) > 64 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + (x != y) as usize;
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    #[test]
    fn distance_counts_edits() {
        assert_eq!(super::edit_distance("relu", "relu6"), 1);
        assert_eq!(super::edit_distance("conv2d", "cnov2d"), 2);
        assert_eq!(super::edit_distance("", "exp"), 3);
    }
}
