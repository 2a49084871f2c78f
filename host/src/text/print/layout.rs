//! What stands where: which nodes get a line of their own, and in which scope.
//!
//! A node that is no leaf is written at the one place that uses it when that is a binding's value or a
//! statement. Any other gets a label, defined in the innermost scope that encloses all its uses, before
//! the first of them, so that the text is as long as the program however much is shared in it. The
//! scalar expressions of tensor programs, which mean the same wherever they stand, are written in place
//! unless they are large and used twice.

use super::shape::is_raw;
use crate::ir::{BodyView, Expr, Kind, PrimBlockView, ScopeTree, Term, View};
use crate::text::implied::{has_implied_type, is_type_redundant};

const UNSEEN: u32 = u32::MAX;

/// The value of a binding or a statement, used nowhere else: it is written where it is used.
const DIRECT: u8 = 1;
/// A `let` or sequence that is all there is between two braces: they are its own.
const IN_BODY: u8 = 2;
/// A constant that is too long to stand inside an expression.
const LONG: u8 = 4;
/// A scalar expression that is large enough to be shared.
const LARGE: u8 = 8;

/// Nodes of a scalar expression that is repeated rather than shared.
const SMALL_EXPRESSION: u8 = 12;

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
        if body.kind(body.root()) == Kind::PRIM_FUNC {
            layout.measure(body);
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

    /// Finds the scalar expressions that are large. What a region shares with another is shared by all
    /// the places in which the region is written.
    fn measure(&mut self, body: BodyView<'_>) {
        let mut size = vec![1u8; body.len()];
        for expr in body.post_order() {
            let operands = body.operands(expr).iter();
            let total =
                operands.fold(1u8, |sum, operand| sum.saturating_add(size[operand.index()]));
            size[expr.index()] = total;
            if total > SMALL_EXPRESSION && is_scalar(body.kind(expr)) {
                self.flags[expr.index()] |= LARGE;
            }
        }
        for expr in body.post_order() {
            if body.kind(expr) == Kind::REGION && self.uses[expr.index()] > 1 {
                for operand in body.operands(expr).iter() {
                    self.uses[operand.index()] = u32::MAX;
                }
            }
        }
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
            View::PrimFunc { body: inner, .. } => {
                return self.place_body(body, expr, inner, tree);
            }
            View::For { min, extent, body: inner, .. } => {
                self.place(body, min, home, tree);
                self.place(body, extent, home, tree);
                return self.place_body(body, expr, inner, tree);
            }
            View::IfStmt { cond, then, otherwise } => {
                self.place(body, cond, home, tree);
                self.place_body(body, expr, then, tree);
                if let Some(otherwise) = otherwise {
                    self.place_body(body, expr, otherwise, tree);
                }
                return;
            }
            View::Seq(stmts) => {
                let scope = self.own_scope(expr, tree);
                for stmt in stmts.iter() {
                    self.place_stmt(body, stmt, scope, tree);
                }
                return;
            }
            View::Block(block) => return self.place_block(body, expr, block, tree),
            View::Let(view) => {
                let scope = self.own_scope(expr, tree);
                for (var, value) in view.bindings() {
                    if self.uses[value.index()] == 1 && may_be_bound(body, var, value) {
                        self.flags[value.index()] |= DIRECT;
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

    /// The names of a block's iterators are known in its regions, its initial statement and its body.
    fn place_block(
        &mut self,
        body: BodyView<'_>,
        expr: Expr,
        block: PrimBlockView<'_>,
        tree: &mut ScopeTree,
    ) {
        for value in block.iters.iter().skip(1).step_by(2) {
            self.place(body, value, self.home[expr.index()], tree);
        }
        let head = self.open(expr, tree);
        for region in block.reads.iter().chain(block.writes.iter()) {
            self.place(body, region, head, tree);
        }
        // The scopes have fixed numbers, so the one of the initial statement is there without one.
        let init = tree.add(head);
        if let Some(stmt) = block.init {
            self.place_whole(body, stmt, init, tree);
        }
        let inner = tree.add(head);
        self.place_whole(body, block.body, inner, tree);
    }

    /// The scope of a `let` or a sequence.
    fn own_scope(&mut self, expr: Expr, tree: &mut ScopeTree) -> u32 {
        match self.flags[expr.index()] & IN_BODY {
            0 => self.open(expr, tree),
            _ => self.home[expr.index()],
        }
    }

    fn open(&mut self, expr: Expr, tree: &mut ScopeTree) -> u32 {
        let scope = tree.add(self.home[expr.index()]);
        let first = &mut self.opens[expr.index()];
        *first = (*first).min(scope);
        scope
    }

    fn place_body(
        &mut self,
        body: BodyView<'_>,
        opener: Expr,
        content: Expr,
        tree: &mut ScopeTree,
    ) {
        let scope = self.open(opener, tree);
        self.place_whole(body, content, scope, tree);
    }

    /// Places what is all there is in a scope.
    fn place_whole(&mut self, body: BodyView<'_>, content: Expr, scope: u32, tree: &mut ScopeTree) {
        let is_list = match body.kind(content) {
            // Braces without bindings are no `let`.
            Kind::LET => !body.terms().children(Term(body.raw_node(content).data)).is_empty(),
            // Braces around one statement are no sequence.
            Kind::SEQ => body.operands(content).len() != 1,
            _ => false,
        };
        if is_list && self.uses[content.index()] == 1 && !is_raw(body, content) {
            self.flags[content.index()] |= IN_BODY;
            return self.place(body, content, scope, tree);
        }
        match body.kind(body.root()) == Kind::PRIM_FUNC {
            true => self.place_stmt(body, content, scope, tree),
            false => self.place(body, content, scope, tree),
        }
    }

    fn place_stmt(&mut self, body: BodyView<'_>, stmt: Expr, scope: u32, tree: &mut ScopeTree) {
        if self.uses[stmt.index()] == 1 {
            self.flags[stmt.index()] |= DIRECT;
        }
        self.place(body, stmt, scope, tree);
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
        is_leaf && self.flags[expr.index()] & LONG == 0 && body.operands(expr).is_empty()
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
            && self.flags[expr.index()] & (DIRECT | IN_BODY) == 0
            && !self.is_leaf(body, expr)
            && !self.is_nested(body, expr)
    }

    /// Whether a node is written inside the expression that uses it, besides the leaves: a tuple of
    /// leaves, an item of a variable, most scalar expressions.
    pub(super) fn is_nested(&self, body: BodyView<'_>, expr: Expr) -> bool {
        let kind = body.kind(expr);
        if body.kind(body.root()) == Kind::PRIM_FUNC {
            let is_repeated = self.uses[expr.index()] == 1 || self.flags[expr.index()] & LARGE == 0;
            let is_scalar = is_scalar(kind) && is_repeated;
            return (is_scalar || kind == Kind::REGION) && !is_raw(body, expr);
        }
        if !matches!(kind, Kind::TUPLE | Kind::TUPLE_GET_ITEM)
            || self.uses[expr.index()] != 1
            || !has_implied_type(body, expr)
            || is_raw(body, expr)
        {
            return false;
        }
        match body.view(expr) {
            View::Tuple(fields) => fields.iter().all(|field| self.is_leaf(body, field)),
            View::TupleGetItem { tuple, .. } => body.kind(tuple) == Kind::VAR,
            _ => false,
        }
    }

    /// Whether a node is written where its only user needs it, as a binding's value or a statement.
    pub(super) fn is_direct(&self, expr: Expr) -> bool {
        self.flags[expr.index()] & DIRECT != 0
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

/// Whether nodes of this kind are scalar expressions with operands.
fn is_scalar(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::LOAD
            | Kind::BINARY
            | Kind::SELECT
            | Kind::CAST
            | Kind::INTRINSIC
            | Kind::RAMP
            | Kind::BROADCAST
            | Kind::CALL
    )
}

/// Whether one annotation says the type of a binding's variable and that of its value.
fn may_be_bound(body: BodyView<'_>, var: Expr, value: Expr) -> bool {
    is_type_redundant(body.kind(value))
        || body.kind(value).is_leaf_value()
        || body.ty(var) == body.ty(value)
}
