//! Where nodes that are looked for stand in the text.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::Expr;

/// For each node that is looked for, the place where it is first written.
pub(super) struct Marks(FxHashMap<Expr, Option<Range<usize>>>);

impl Marks {
    pub(super) fn of(nodes: &[Expr]) -> Self {
        Self(nodes.iter().map(|&node| (node, None)).collect())
    }

    /// Whether a node is looked for and was not written before.
    #[inline]
    pub(super) fn is_wanted(&self, expr: Expr) -> bool {
        !self.0.is_empty() && self.0.get(&expr) == Some(&None)
    }

    pub(super) fn set(&mut self, expr: Expr, place: Range<usize>) {
        self.0.insert(expr, Some(place));
    }

    pub(super) fn get(&self, expr: Expr) -> Option<Range<usize>> {
        self.0.get(&expr).cloned().flatten()
    }
}
