//! Walking the statements of a tensor program.

use rustc_hash::FxHashMap;

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
    seen: Seen,
}

/// Nodes of a body, a bit each, in blocks: those that stand together are looked up together, and a walk over a few statements
/// of a large program takes no memory for the others.
#[derive(Default)]
struct Seen(FxHashMap<usize, [u64; WORDS]>);

/// Words of a block, a line of a cache.
const WORDS: usize = 8;

impl<'a> BodyView<'a> {
    /// Walks over `root` and the statements inside it, without recursion and in time linear in them. A statement
    /// that stands in several places is visited in the first.
    pub fn walk(self, root: Expr) -> StmtWalk<'a> {
        StmtWalk { body: self, stack: vec![Walk::Enter(root)], seen: Seen::default() }
    }

    /// The statements directly inside a statement.
    pub fn inner_stmts(&self, stmt: Expr) -> Vec<Expr> {
        let mut inner = Vec::new();
        self.each_inner(stmt, |stmt| inner.push(stmt));
        inner
    }

    fn each_inner(&self, stmt: Expr, mut see: impl FnMut(Expr)) {
        match self.view(stmt) {
            View::For { body, .. } | View::PrimFunc { body, .. } => see(body),
            View::Block(block) => block.init.into_iter().chain([block.body]).for_each(see),
            View::Seq(stmts) => stmts.iter().for_each(see),
            View::IfStmt { then, otherwise, .. } => {
                [then].into_iter().chain(otherwise).for_each(see);
            }
            _ => {}
        }
    }
}

impl Seen {
    /// Notes a node; false where it was.
    fn insert(&mut self, expr: Expr) -> bool {
        let (word, bit) = (expr.index() / 64, 1 << (expr.index() % 64));
        let word = &mut self.0.entry(word / WORDS).or_default()[word % WORDS];
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
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
                let first = self.stack.len();
                self.body.each_inner(stmt, |inner| self.stack.push(Walk::Enter(inner)));
                self.stack[first..].reverse();
            }
            return Some(step);
        }
    }
}
