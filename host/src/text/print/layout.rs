//! What stands where: which nodes get a line of their own, and in which scope.
//!
//! A node that is no leaf is written at the one place that uses it when that is a binding's value. Any
//! other gets a label, defined in the innermost scope that encloses all its uses, before the first of
//! them, so that the text is as long as the program however much is shared in it.

use super::shape::is_raw;
use crate::ir::{BodyView, Expr, Kind, ScopeTree, View};
use crate::text::implied::{has_implied_type, is_type_redundant};

const UNSEEN: u32 = u32::MAX;

/// The value of a binding, used nowhere else: it is written behind the binding's `=`.
const BOUND: u8 = 1;
/// A `let` that is the whole body of a function or branch: its braces are the body's.
const IN_BODY: u8 = 2;
/// A constant that is too long to stand inside an expression.
const LONG: u8 = 4;

pub(super) struct Layout {
    uses: Vec<u32>,
    flags: Vec<u8>,
    home: Vec<u32>,
    /// For a node that opens scopes, the first of them.
    opens: Vec<u32>,
    /// Labelled nodes by scope: those of scope `s` are `labelled[first[s] .. first[s + 1]]`.
    first: Vec<u32>,
    labelled: Vec<Expr>,
}

impl Layout {
    /// Two sweeps over a published body; `is_long` says which constants are too long to be repeated.
    pub(super) fn of(body: BodyView<'_>, is_long: impl Fn(Expr) -> bool) -> Self {
        let count = body.len();
        let mut layout = Self {
            uses: vec![0; count],
            flags: vec![0; count],
            home: vec![UNSEEN; count],
            opens: vec![UNSEEN; count],
            first: Vec::new(),
            labelled: Vec::new(),
        };
        for expr in body.post_order() {
            if body.kind(expr) == Kind::CONSTANT && is_long(expr) {
                layout.flags[expr.index()] = LONG;
            }
            for operand in body.operands(expr).iter() {
                let uses = &mut layout.uses[operand.index()];
                *uses = uses.saturating_add(1);
            }
        }
        let mut tree = ScopeTree::new();
        layout.home[body.root().index()] = ScopeTree::ROOT;
        // Users stand behind their operands, so the home of each node is final when it is reached.
        for expr in body.post_order().rev() {
            if layout.home[expr.index()] != UNSEEN {
                layout.place_operands(body, expr, &mut tree);
            }
        }
        layout.collect(body, tree.len());
        layout
    }

    fn place_operands(&mut self, body: BodyView<'_>, expr: Expr, tree: &mut ScopeTree) {
        let home = self.home[expr.index()];
        match body.view(expr) {
            _ if is_raw(body, expr) => {}
            View::Function { params: _, body: result, .. } => {
                return self.place_body(body, expr, result, tree);
            }
            View::If { cond, then, otherwise } => {
                self.place(body, cond, home, tree);
                self.place_body(body, expr, then, tree);
                return self.place_body(body, expr, otherwise, tree);
            }
            View::Let(view) => {
                let scope = match self.flags[expr.index()] & IN_BODY {
                    0 => self.open(expr, tree),
                    _ => home,
                };
                for (var, value) in view.bindings() {
                    if self.uses[value.index()] == 1 && may_be_bound(body, var, value) {
                        self.flags[value.index()] |= BOUND;
                    }
                    self.place(body, value, scope, tree);
                }
                return self.place(body, view.result(), scope, tree);
            }
            _ => {}
        }
        for operand in body.operands(expr).iter() {
            self.place(body, operand, home, tree);
        }
    }

    fn open(&mut self, expr: Expr, tree: &mut ScopeTree) -> u32 {
        let scope = tree.add(self.home[expr.index()]);
        let first = &mut self.opens[expr.index()];
        *first = (*first).min(scope);
        scope
    }

    fn place_body(&mut self, body: BodyView<'_>, opener: Expr, result: Expr, tree: &mut ScopeTree) {
        let scope = self.open(opener, tree);
        let is_whole = body.kind(result) == Kind::LET
            && self.uses[result.index()] == 1
            && !is_raw(body, result);
        if is_whole {
            self.flags[result.index()] |= IN_BODY;
        }
        self.place(body, result, scope, tree);
    }

    fn place(&mut self, body: BodyView<'_>, expr: Expr, scope: u32, tree: &ScopeTree) {
        if self.is_leaf(body, expr) {
            return;
        }
        let home = &mut self.home[expr.index()];
        *home = if *home == UNSEEN { scope } else { tree.common(*home, scope) };
    }

    /// Whether a node is written wherever it is used.
    fn is_leaf(&self, body: BodyView<'_>, expr: Expr) -> bool {
        let kind = body.kind(expr);
        let is_leaf = kind.is_leaf_value() || matches!(kind, Kind::VAR | Kind::BUFFER);
        is_leaf && self.flags[expr.index()] & LONG == 0
    }

    /// Sorts the labelled nodes by scope; within one they keep their order.
    fn collect(&mut self, body: BodyView<'_>, scopes: usize) {
        let labelled: Vec<Expr> =
            body.post_order().filter(|&expr| self.has_label(body, expr)).collect();
        self.first = vec![0; scopes + 1];
        for expr in &labelled {
            self.first[self.home[expr.index()] as usize + 1] += 1;
        }
        for scope in 0..scopes {
            self.first[scope + 1] += self.first[scope];
        }
        let mut next = self.first.clone();
        self.labelled = labelled.clone();
        for expr in labelled {
            let slot = &mut next[self.home[expr.index()] as usize];
            self.labelled[*slot as usize] = expr;
            *slot += 1;
        }
    }

    /// Whether a node is defined with a label.
    pub(super) fn has_label(&self, body: BodyView<'_>, expr: Expr) -> bool {
        self.home[expr.index()] != UNSEEN
            && expr != body.root()
            && self.flags[expr.index()] & (BOUND | IN_BODY) == 0
            && !self.is_leaf(body, expr)
            && !self.is_nested(body, expr)
    }

    /// Whether a node is written inside the expression that uses it, besides the leaves: a tuple of
    /// leaves, an item of a variable.
    pub(super) fn is_nested(&self, body: BodyView<'_>, expr: Expr) -> bool {
        if self.uses[expr.index()] != 1 || !has_implied_type(body, expr) || is_raw(body, expr) {
            return false;
        }
        match body.view(expr) {
            View::Tuple(fields) => fields.iter().all(|field| self.is_leaf(body, field)),
            View::TupleGetItem { tuple, .. } => body.kind(tuple) == Kind::VAR,
            _ => false,
        }
    }

    /// Whether a node is the value of a binding and written behind its `=`.
    pub(super) fn is_bound(&self, expr: Expr) -> bool {
        self.flags[expr.index()] & BOUND != 0
    }

    /// Whether the braces of a function or branch are those of this `let`.
    pub(super) fn is_body(&self, expr: Expr) -> bool {
        self.flags[expr.index()] & IN_BODY != 0
    }

    /// Scope `index` of those that a node opens.
    pub(super) fn scope(&self, opener: Expr, index: u32) -> u32 {
        self.opens[opener.index()] + index
    }

    /// The labelled nodes of a scope, in the order of their definitions.
    pub(super) fn labelled(&self, scope: u32) -> &[Expr] {
        let scope = scope as usize;
        &self.labelled[self.first[scope] as usize..self.first[scope + 1] as usize]
    }
}

/// Whether one annotation says the type of a binding's variable and that of its value.
fn may_be_bound(body: BodyView<'_>, var: Expr, value: Expr) -> bool {
    is_type_redundant(body.kind(value))
        || body.kind(value).is_leaf_value()
        || body.ty(var) == body.ty(value)
}
