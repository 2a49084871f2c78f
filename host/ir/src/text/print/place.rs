//! Finds the scope of each node: the innermost one that encloses all its uses.

use super::layout::{DIRECT, IN_BODY, LEAF, Layout, RAW, UNSEEN};
use crate::text::implied::is_type_redundant;
use crate::{BodyView, Expr, Kind, PrimBlockView, ScopeTree, Term, View};

/// A sweep over the nodes from the root down.
pub(super) struct Placing<'l, 'a> {
    layout: &'l mut Layout,
    body: BodyView<'a>,
    tree: ScopeTree,
}

impl<'l, 'a> Placing<'l, 'a> {
    pub(super) fn new(layout: &'l mut Layout, body: BodyView<'a>) -> Self {
        Self { layout, body, tree: ScopeTree::new() }
    }

    /// Returns the number of scopes.
    pub(super) fn place_all(mut self) -> usize {
        self.layout.home[self.body.root().index()] = ScopeTree::ROOT;
        // Users stand behind their operands, so the home of each node is final when it is reached.
        for expr in self.body.post_order().rev() {
            if self.layout.home[expr.index()] != UNSEEN {
                self.place_operands(expr);
            }
        }
        self.tree.len()
    }

    fn place_operands(&mut self, expr: Expr) {
        let home = self.layout.home[expr.index()];
        match self.body.view(expr) {
            _ if self.layout.flags[expr.index()] & RAW != 0 => {}
            View::Function { params: _, body: result, .. } => {
                return self.place_body(expr, result);
            }
            View::If { cond, then, otherwise } => {
                self.place(cond, home);
                self.place_body(expr, then);
                return self.place_body(expr, otherwise);
            }
            View::PrimFunc { body: inner, .. } => {
                return self.place_body(expr, inner);
            }
            View::For { min, extent, body: inner, .. } => {
                self.place(min, home);
                self.place(extent, home);
                return self.place_body(expr, inner);
            }
            View::IfStmt { cond, then, otherwise } => {
                self.place(cond, home);
                self.place_body(expr, then);
                if let Some(otherwise) = otherwise {
                    self.place_body(expr, otherwise);
                }
                return;
            }
            View::Seq(stmts) => {
                let scope = self.own_scope(expr);
                for stmt in stmts.iter() {
                    self.place_stmt(stmt, scope);
                }
                return;
            }
            View::Block(block) => return self.place_block(expr, block),
            View::Let(view) => {
                let scope = self.own_scope(expr);
                for (var, value) in view.bindings() {
                    if self.layout.uses[value.index()] == 1 && self.may_be_bound(var, value) {
                        self.layout.flags[value.index()] |= DIRECT;
                    }
                    self.place(value, scope);
                }
                return self.place(view.result(), scope);
            }
            _ => {}
        }
        for operand in self.body.operands(expr).iter() {
            self.place(operand, home);
        }
    }

    /// The names of a block's iterators are known in its regions, its initial statement and its body.
    fn place_block(&mut self, expr: Expr, block: PrimBlockView<'_>) {
        let bindings = block.iters.iter().skip(1).step_by(2);
        for value in bindings.chain(block.domains.iter()).chain(block.predicate) {
            self.place(value, self.layout.home[expr.index()]);
        }
        let head = self.open(expr);
        for region in block.reads.iter().chain(block.writes.iter()) {
            self.place(region, head);
        }
        // The scopes have fixed numbers, so the one of the initial statement is there without one.
        let init = self.tree.add(head);
        if let Some(stmt) = block.init {
            self.place_whole(stmt, init);
        }
        let inner = self.tree.add(head);
        self.place_whole(block.body, inner);
    }

    /// The scope of a `let` or a sequence.
    fn own_scope(&mut self, expr: Expr) -> u32 {
        match self.layout.flags[expr.index()] & IN_BODY {
            0 => self.open(expr),
            _ => self.layout.home[expr.index()],
        }
    }

    fn open(&mut self, expr: Expr) -> u32 {
        let scope = self.tree.add(self.layout.home[expr.index()]);
        let first = &mut self.layout.opens[expr.index()];
        *first = (*first).min(scope);
        scope
    }

    fn place_body(&mut self, opener: Expr, content: Expr) {
        let scope = self.open(opener);
        self.place_whole(content, scope);
    }

    /// Places what is all there is in a scope.
    fn place_whole(&mut self, content: Expr, scope: u32) {
        let is_list = match self.body.kind(content) {
            // Braces without bindings are no `let`.
            Kind::LET => {
                !self.body.terms().children(Term(self.body.raw_node(content).data)).is_empty()
            }
            // Braces around one statement are no sequence.
            Kind::SEQ => self.body.operands(content).len() != 1,
            _ => false,
        };
        if is_list
            && self.layout.uses[content.index()] == 1
            && self.layout.flags[content.index()] & RAW == 0
        {
            self.layout.flags[content.index()] |= IN_BODY;
            return self.place(content, scope);
        }
        match self.layout.is_prim {
            true => self.place_stmt(content, scope),
            false => self.place(content, scope),
        }
    }

    fn place_stmt(&mut self, stmt: Expr, scope: u32) {
        if self.layout.uses[stmt.index()] == 1 {
            self.layout.flags[stmt.index()] |= DIRECT;
        }
        self.place(stmt, scope);
    }

    fn place(&mut self, expr: Expr, scope: u32) {
        if self.layout.flags[expr.index()] & LEAF != 0 {
            return;
        }
        let home = &mut self.layout.home[expr.index()];
        *home = if *home == UNSEEN { scope } else { self.tree.common(*home, scope) };
    }

    /// Whether one annotation says the type of a binding's variable and that of its value.
    fn may_be_bound(&self, var: Expr, value: Expr) -> bool {
        let kind = self.body.kind(value);
        is_type_redundant(kind)
            || self.layout.flags[value.index()] & LEAF != 0
            || self.body.ty(var) == self.body.ty(value)
    }
}
