//! Where nodes are evaluated, and where variables and buffers can be read.

use crate::{BodyView, Expr, Kind, ScopeTree, View};

const NONE: u32 = u32::MAX;

/// The scopes of a body: bodies of functions, branches and loops, and lists of bindings or statements.
///
/// Found in one sweep from the root down. A node that is used in several scopes is evaluated in the innermost
/// one that encloses them.
pub(super) struct Scopes {
    tree: ScopeTree,
    /// For a variable or buffer, the scope that it can be read in; `NONE` while nothing binds it.
    visible: Vec<u32>,
    /// For a variable, the number that its users are above: what stands before its binding, and its value,
    /// stand up to there.
    bound_after: Vec<u32>,
    /// Places that bind what another place has bound.
    bound_twice: Vec<(Expr, Expr)>,
    /// User, what it uses, and the scope it is used in.
    uses: Vec<(Expr, Expr, u32)>,
}

/// What is wrong with the use of a variable or buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Misuse {
    /// Nothing binds it.
    Unbound,
    /// It is bound in a scope that does not enclose the use.
    OutOfScope,
    /// It is used before it is bound, or in its own value.
    TooEarly,
}

impl Scopes {
    pub(super) fn of(body: BodyView<'_>) -> Self {
        let count = body.len();
        let mut scopes = Self {
            tree: ScopeTree::new(),
            visible: vec![NONE; count],
            bound_after: vec![0; count],
            bound_twice: Vec::new(),
            uses: Vec::new(),
        };
        let mut home = vec![NONE; count];
        home[body.root().index()] = ScopeTree::ROOT;
        for expr in body.post_order().rev() {
            scopes.visit(body, expr, &mut home);
        }
        scopes
    }

    /// The uses of variables and buffers that are wrong: user, what it uses, how.
    pub(super) fn misuses(&self) -> impl Iterator<Item = (Expr, Expr, Misuse)> {
        // The sweep met users from the last to the first.
        self.uses.iter().rev().filter_map(|&(user, used, scope)| {
            let visible = self.visible[used.index()];
            let misuse = if visible == NONE {
                Misuse::Unbound
            } else if self.tree.common(visible, scope) != visible {
                Misuse::OutOfScope
            } else if user.0 <= self.bound_after[used.index()] {
                Misuse::TooEarly
            } else {
                return None;
            };
            Some((user, used, misuse))
        })
    }

    /// Binder and variable, where the variable has another binder too.
    pub(super) fn bound_twice(&self) -> &[(Expr, Expr)] {
        &self.bound_twice
    }

    fn visit(&mut self, body: BodyView<'_>, expr: Expr, home: &mut [u32]) {
        let kind = body.kind(expr);
        let outer = home[expr.index()];
        let operands = body.operands(expr);
        let mut head = Head::default();
        if kind == Kind::BLOCK
            && let View::Block(block) = body.view(expr)
        {
            head = Head { iters: block.iters.len(), len: block.head_len() };
        }
        let mut opened = NONE;
        // The largest number among the operands so far.
        let mut before = 0;
        for (position, operand) in operands.iter().enumerate() {
            let scope = match opens(kind, position, head) {
                Opens::Nothing => outer,
                Opens::Own => {
                    opened = self.tree.add(outer);
                    opened
                }
                Opens::Shared if opened == NONE => {
                    opened = self.tree.add(outer);
                    opened
                }
                Opens::Shared => opened,
            };
            if body.is_binder(expr, position) {
                let value = operands.get(position + 1).filter(|_| names_value(kind));
                self.bind(body, expr, operand, scope, before, value);
            } else if matches!(body.kind(operand), Kind::VAR | Kind::BUFFER) {
                self.uses.push((expr, operand, scope));
            } else if !body.kind(operand).is_leaf_value() {
                let seen = &mut home[operand.index()];
                *seen = if *seen == NONE { scope } else { self.tree.common(*seen, scope) };
                if kind == Kind::SEQ && matches!(body.kind(operand), Kind::ALLOC | Kind::LET_STMT) {
                    // It binds for the statements behind it.
                    let bound = body.operands(operand).at(0);
                    self.bound_after[bound.index()] = before;
                }
            }
            before = before.max(operand.0);
        }
    }

    fn bind(
        &mut self,
        body: BodyView<'_>,
        binder: Expr,
        bound: Expr,
        scope: u32,
        before: u32,
        value: Option<Expr>,
    ) {
        let visible = &mut self.visible[bound.index()];
        if *visible != NONE {
            self.bound_twice.push((binder, bound));
            return;
        }
        *visible = scope;
        let after = &mut self.bound_after[bound.index()];
        *after = (*after).max(before);
        // A function may call itself.
        if let Some(value) = value.filter(|&value| body.kind(value) != Kind::FUNCTION) {
            *after = (*after).max(value.0);
        }
    }
}

enum Opens {
    /// It is evaluated where its user is.
    Nothing,
    /// A scope for it alone.
    Own,
    /// The scope that it has in common with its neighbours of this kind.
    Shared,
}

/// The operands of a block before its regions: of its iterators, and all of them.
#[derive(Clone, Copy, Default)]
struct Head {
    iters: usize,
    len: usize,
}

/// The scope that an operand opens.
fn opens(kind: Kind, position: usize, head: Head) -> Opens {
    match kind {
        Kind::IF | Kind::IF_STMT if position > 0 => Opens::Own,
        Kind::LET | Kind::SEQ | Kind::FUNCTION | Kind::PRIM_FUNC => Opens::Shared,
        Kind::FOR if position == 0 || position == 3 => Opens::Shared,
        // What an iterator is bound to, its domain and the predicate are evaluated outside.
        Kind::BLOCK if position >= head.len => Opens::Shared,
        Kind::BLOCK if position < head.iters && position.is_multiple_of(2) => Opens::Shared,
        _ => Opens::Nothing,
    }
}

/// Whether the operand behind a binder is the value that it names.
fn names_value(kind: Kind) -> bool {
    matches!(kind, Kind::LET | Kind::LET_STMT)
}
