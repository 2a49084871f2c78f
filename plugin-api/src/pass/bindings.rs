//! What variables stand for, while a function is edited.

use crate::ir::{BodyView, Expr, View};
use crate::pass::Effects;

/// What the variables of a function stand for while it is edited, and which nodes read memory where they stand.
pub struct Bindings {
    definitions: Definitions,
    /// For each node of the base whether a variable is bound to it; empty where nothing writes memory.
    is_value: Vec<bool>,
}

impl Bindings {
    /// Those of the first `len` nodes of a body, before any replacement.
    pub fn of(body: BodyView<'_>, len: usize, effects: &Effects) -> Self {
        let mut bound: Vec<Expr> = (0..len as u32).map(Expr).collect();
        let has_writes = effects.first_write().is_some();
        let mut is_value = vec![false; if has_writes { len } else { 0 }];
        for expr in (0..len as u32).map(Expr) {
            let View::Let(bindings) = body.view(expr) else { continue };
            for (var, value) in bindings.bindings() {
                bound[var.index()] = if effects.version(value) != 0 { var } else { value };
                if has_writes {
                    is_value[value.index()] = true;
                }
            }
        }
        Self { definitions: Definitions::new(bound), is_value }
    }

    /// The value that a `let`-bound variable stands for, with the replacements of `body`, through variables bound to
    /// variables; anything else is itself. A variable whose value reads memory that somebody may write is itself as well.
    pub fn definition(&mut self, body: BodyView<'_>, expr: Expr) -> Expr {
        self.definitions.get(expr, |expr| body.resolve(expr))
    }

    /// The same in the function as it was when the edit began.
    pub fn original(&mut self, expr: Expr) -> Expr {
        self.definitions.original(expr)
    }

    /// Says that `old`, which nothing has replaced yet, is about to be replaced.
    pub fn replaces(&mut self, old: Expr) {
        self.definitions.replaces(old);
    }

    /// Whether a node reads memory and is nested: it may be evaluated before the node that it is read by, and
    /// a write lie between.
    pub fn is_nested_read(&self, effects: &Effects, expr: Expr) -> bool {
        effects.version(expr) != 0 && self.is_value.get(expr.index()) != Some(&true)
    }
}

/// What the nodes of a function stand for: most `let`-bound variables for their values, any other node for itself.
///
/// A variable may be bound to a variable, and a value may be replaced by one, so what a node stands for can be
/// many steps away. Each search shortens the way that it went by half, and a chain that is searched from each
/// of its links takes little more than one step a search. (Tarjan and van Leeuwen, "Worst-case analysis of set union
/// algorithms", 1984.)
struct Definitions {
    /// By node of the base, what it is bound to; itself when it is not.
    bound: Vec<Expr>,
    /// As `bound`, with ways shortened. Bindings of the base do not change, so these hold for ever.
    originals: Vec<Expr>,
    /// By node of the base, a node further along its way, and the generation in which that is so.
    shortcuts: Vec<(Expr, u32)>,
    /// By node of the base, the last generation in which a shortcut leads past it.
    passed: Vec<u32>,
    /// Counted up when a node that shortcuts lead past is replaced.
    generation: u32,
}

impl Definitions {
    /// `bound` says of each node of the base what it is bound to; itself when it is not.
    fn new(bound: Vec<Expr>) -> Self {
        let count = bound.len();
        Self {
            originals: bound.clone(),
            shortcuts: bound.iter().map(|&value| (value, 0)).collect(),
            passed: vec![0; count],
            generation: 1,
            bound,
        }
    }

    /// What a node stands for, where `resolve` says what a node is replaced by so far.
    fn get(&mut self, expr: Expr, resolve: impl Fn(Expr) -> Expr) -> Expr {
        let mut expr = resolve(expr);
        while let Some(next) = self.next(expr, &resolve) {
            let Some(after) = self.next(next, &resolve) else { return next };
            self.shortcuts[expr.index()] = (after, self.generation);
            self.passed[next.index()] = self.generation;
            expr = after;
        }
        expr
    }

    fn next(&self, expr: Expr, resolve: impl Fn(Expr) -> Expr) -> Option<Expr> {
        let &(shortcut, generation) = self.shortcuts.get(expr.index())?;
        let next = if generation == self.generation { shortcut } else { self.bound[expr.index()] };
        (next != expr).then(|| resolve(next))
    }

    /// What a node of the base stands for without any replacement.
    fn original(&mut self, mut expr: Expr) -> Expr {
        while let Some(&next) = self.originals.get(expr.index())
            && next != expr
        {
            let after = self.originals[next.index()];
            self.originals[expr.index()] = after;
            expr = after;
        }
        expr
    }

    /// Says that `old`, which nothing has replaced yet, is about to be replaced.
    fn replaces(&mut self, old: Expr) {
        if self.passed.get(old.index()) == Some(&self.generation) {
            self.generation += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Variables and values take turns: node `2 * n` is a variable, bound to node `2 * n + 1`.
    fn pairs(count: u32) -> Definitions {
        Definitions::new((0..2 * count).map(|node| Expr(node | 1)).collect())
    }

    #[test]
    fn a_chain_that_collapses_takes_few_steps_a_search() {
        const LENGTH: u32 = if cfg!(miri) { 500 } else { 20_000 };
        let mut definitions = pairs(LENGTH);
        let mut replaced: Vec<Expr> = (0..2 * LENGTH).map(Expr).collect();
        let steps = Cell::new(0);
        for value in (1..2 * LENGTH).step_by(2).skip(2) {
            // The value becomes the variable two before it.
            let (before, own) = (Expr(value - 5), Expr(value));
            definitions.replaces(own);
            replaced[own.index()] = before;
            let found = definitions.get(Expr(value - 1), |expr| {
                steps.set(steps.get() + 1);
                replaced[expr.index()]
            });
            assert_eq!(found, Expr(if value % 4 == 1 { 1 } else { 3 }));
        }
        assert!(steps.get() < 20 * LENGTH, "{} steps for {LENGTH} searches", steps.get());
    }

    #[test]
    fn variables_of_variables_take_few_steps_a_search() {
        const LENGTH: u32 = if cfg!(miri) { 500 } else { 20_000 };
        let before = |node: u32| Expr(node.saturating_sub(1));
        let mut definitions = Definitions::new((0..LENGTH).map(before).collect());
        assert!((0..LENGTH).all(|node| definitions.original(Expr(node)) == Expr(0)));
        assert!(definitions.originals.iter().all(|&next| next == Expr(0)));
        let steps = Cell::new(0);
        for node in (0..LENGTH).rev() {
            let resolve = |expr: Expr| {
                steps.set(steps.get() + 1);
                expr
            };
            assert_eq!(definitions.get(Expr(node), resolve), Expr(0));
        }
        assert!(steps.get() < 20 * LENGTH, "{} steps for {LENGTH} searches", steps.get());
    }

    #[test]
    fn a_variable_that_was_passed_can_be_replaced() {
        for middle in [Expr(3), Expr(2), Expr(1)] {
            // Each is bound to the one before; the last to itself.
            let mut definitions = Definitions::new([0, 0, 1, 2, 3, 5].map(Expr).to_vec());
            assert_eq!(definitions.get(Expr(4), |expr| expr), Expr(0));
            definitions.replaces(middle);
            let resolve = |expr: Expr| if expr == middle { Expr(5) } else { expr };
            assert_eq!(definitions.get(Expr(4), resolve), Expr(5), "{middle:?}");
        }
    }
}
