//! Walking the statements of a tensor program.

use std::collections::HashSet;

use crate::ir::{BodyView, Expr, View};

/// A step of a walk over statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Walk {
    /// The walk comes to a statement; those inside it follow.
    Enter(Expr),
    /// The walk has seen everything inside the statement.
    Leave(Expr),
}

/// The statements inside a statement in the order they run. Made by [`BodyView::walk`].
pub struct StmtWalk<'a> {
    body: BodyView<'a>,
    stack: Vec<Walk>,
    seen: HashSet<Expr>,
}

impl<'a> BodyView<'a> {
    /// Walks over `root` and the statements inside it, without recursion and in time linear in them. A statement
    /// that stands in several places is visited in the first.
    pub fn walk(self, root: Expr) -> StmtWalk<'a> {
        StmtWalk { body: self, stack: vec![Walk::Enter(root)], seen: HashSet::new() }
    }

    /// The statements directly inside a statement.
    pub fn inner_stmts(&self, stmt: Expr) -> Vec<Expr> {
        match self.view(stmt) {
            View::For { body, .. } => vec![body],
            View::Block(block) => block.init.into_iter().chain([block.body]).collect(),
            View::Seq(stmts) => stmts.to_vec(),
            View::IfStmt { then, otherwise, .. } => [then].into_iter().chain(otherwise).collect(),
            View::PrimFunc { body, .. } => vec![body],
            _ => Vec::new(),
        }
    }
}

impl Iterator for StmtWalk<'_> {
    type Item = Walk;

    fn next(&mut self) -> Option<Walk> {
        loop {
            let step = self.stack.pop()?;
            if let Walk::Enter(stmt) = step {
                if !self.seen.insert(stmt) {
                    continue;
                }
                self.stack.push(Walk::Leave(stmt));
                self.stack.extend(self.body.inner_stmts(stmt).into_iter().rev().map(Walk::Enter));
            }
            return Some(step);
        }
    }
}
