//! What stands where: which nodes get a line of their own, and in which scope.
//!
//! A node that is no leaf is written at the one place that uses it when that is a binding's value or a
//! statement. Any other gets a label, defined in the innermost scope that encloses all its uses, before
//! the first of them, so that the text is as long as the program however much is shared in it. The
//! scalar expressions of tensor programs, which mean the same wherever they stand, are written in place
//! unless they are large and used twice.

use super::place::Placing;
use super::shape::is_raw;
use crate::text::implied::has_implied_type;
use crate::{BodyView, Expr, Kind, View};

pub(super) const UNSEEN: u32 = u32::MAX;

/// The value of a binding or a statement, used nowhere else: it is written where it is used.
pub(super) const DIRECT: u8 = 1;
/// A `let` or sequence that is all there is between two braces: they are its own.
pub(super) const IN_BODY: u8 = 2;
/// Written wherever it is used.
pub(super) const LEAF: u8 = 4;
/// A scalar expression that is large enough to be shared.
const LARGE: u8 = 8;
/// Written with numbers.
pub(super) const RAW: u8 = 16;
/// Defined with a label.
const LABELLED: u8 = 32;

/// Nodes of a scalar expression that is repeated rather than shared.
const SMALL_EXPRESSION: u8 = 12;

pub(super) struct Layout {
    pub(super) is_prim: bool,
    pub(super) uses: Vec<u32>,
    pub(super) flags: Vec<u8>,
    /// The scope of each node that is no leaf.
    pub(super) home: Vec<u32>,
    /// For a node that opens scopes, the first of them.
    pub(super) opens: Vec<u32>,
    /// Labelled nodes by scope: those of scope `s` are `labelled[first[s] .. first[s + 1]]`.
    first: Vec<u32>,
    labelled: Vec<Expr>,
}

impl Layout {
    /// Lays out a published body; `is_long` says which constants are too long to be repeated.
    pub(super) fn of(body: BodyView<'_>, is_long: impl Fn(Expr) -> bool) -> Self {
        let count = body.len();
        let mut layout = Self {
            is_prim: body.kind(body.root()) == Kind::PRIM_FUNC,
            uses: vec![0; count],
            flags: vec![0; count],
            home: vec![UNSEEN; count],
            opens: vec![UNSEEN; count],
            first: Vec::new(),
            labelled: Vec::new(),
        };
        for expr in body.post_order() {
            let kind = body.kind(expr);
            let operands = body.operands(expr);
            let flags = &mut layout.flags[expr.index()];
            if operands.is_empty()
                && (kind.is_leaf_value() || matches!(kind, Kind::VAR | Kind::BUFFER))
                && !(kind == Kind::CONSTANT && is_long(expr))
            {
                *flags |= LEAF;
            }
            if is_raw(body, expr) {
                *flags |= RAW;
            }
            for operand in operands.iter() {
                let uses = &mut layout.uses[operand.index()];
                *uses = uses.saturating_add(1);
            }
        }
        if layout.is_prim {
            layout.measure(body);
        }
        let scopes = Placing::new(&mut layout, body).place_all();
        layout.collect(body, scopes);
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

    /// Sorts the labelled nodes by scope; within one they keep their order.
    fn collect(&mut self, body: BodyView<'_>, scopes: usize) {
        self.first = vec![0; scopes + 1];
        let mut labelled = Vec::new();
        for expr in body.post_order() {
            if self.needs_label(body, expr) {
                self.flags[expr.index()] |= LABELLED;
                self.first[self.home[expr.index()] as usize + 1] += 1;
                labelled.push(expr);
            }
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

    fn needs_label(&self, body: BodyView<'_>, expr: Expr) -> bool {
        self.home[expr.index()] != UNSEEN
            && self.flags[expr.index()] & (DIRECT | IN_BODY | LEAF) == 0
            && expr != body.root()
            && !self.is_nested(body, expr)
    }

    /// Whether a node is written inside the expression that uses it, besides the leaves: a tuple of
    /// leaves, an item of a variable, most scalar expressions.
    fn is_nested(&self, body: BodyView<'_>, expr: Expr) -> bool {
        let kind = body.kind(expr);
        let flags = self.flags[expr.index()];
        if flags & RAW != 0 {
            return false;
        }
        if self.is_prim {
            let is_repeated = self.uses[expr.index()] == 1 || flags & LARGE == 0;
            return (is_scalar(kind) && is_repeated) || kind == Kind::REGION;
        }
        if !matches!(kind, Kind::TUPLE | Kind::TUPLE_GET_ITEM)
            || self.uses[expr.index()] != 1
            || !has_implied_type(body, expr)
        {
            return false;
        }
        match body.view(expr) {
            View::Tuple(fields) => fields.iter().all(|field| self.flags[field.index()] & LEAF != 0),
            View::TupleGetItem { tuple, .. } => body.kind(tuple) == Kind::VAR,
            _ => false,
        }
    }

    /// Whether a node is defined with a label.
    pub(super) fn has_label(&self, expr: Expr) -> bool {
        self.flags[expr.index()] & LABELLED != 0
    }

    /// Whether a node is written with numbers.
    pub(super) fn is_raw(&self, expr: Expr) -> bool {
        self.flags[expr.index()] & RAW != 0
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
