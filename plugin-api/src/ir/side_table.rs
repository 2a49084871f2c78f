//! What is noted of the nodes of one body.

use std::ops::{Index, IndexMut};

use crate::ir::{BodyView, Expr};

/// Something for each node that a body had when the table was made, found by the node. Nodes that are younger have no
/// place in it: [`SideTable::get`] tells, and indexing panics.
#[derive(Clone, Debug)]
pub struct SideTable<T> {
    entries: Vec<T>,
}

impl<T: Clone> SideTable<T> {
    /// A table for a body, with the same for each node.
    pub fn new(body: BodyView<'_>, entry: T) -> Self {
        Self { entries: vec![entry; body.len()] }
    }
}

impl<T> SideTable<T> {
    /// A table for a body, with what `note` says of each node.
    pub fn of(body: BodyView<'_>, note: impl FnMut(Expr) -> T) -> Self {
        Self { entries: body.post_order().map(note).collect() }
    }

    /// What is noted of a node; `None` of one that is younger than the table.
    #[inline]
    pub fn get(&self, expr: Expr) -> Option<&T> {
        self.entries.get(expr.index())
    }

    /// As [`SideTable::get`], to note something.
    #[inline]
    pub fn get_mut(&mut self, expr: Expr) -> Option<&mut T> {
        self.entries.get_mut(expr.index())
    }
}

impl<T> Index<Expr> for SideTable<T> {
    type Output = T;

    #[inline]
    fn index(&self, expr: Expr) -> &T {
        &self.entries[expr.index()]
    }
}

impl<T> IndexMut<Expr> for SideTable<T> {
    #[inline]
    fn index_mut(&mut self, expr: Expr) -> &mut T {
        &mut self.entries[expr.index()]
    }
}
