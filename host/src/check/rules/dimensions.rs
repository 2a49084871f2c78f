//! A symbolic dimension comes from a parameter.

use rustc_hash::FxHashSet;

use crate::check::{Report, Rule, Subject};
use crate::ir::{Dim, DimView, Expr, Kind, Symbol, Term, TermKind, Terms, View};

pub(super) const RULE: Rule = Rule {
    name: "dimensions",
    demands: "a symbol in a type stands in the type of a parameter",
    since: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let mut known = Symbols::new(body.terms());
    let is_function = |&expr: &Expr| matches!(body.kind(expr), Kind::FUNCTION | Kind::PRIM_FUNC);
    for expr in body.post_order().filter(is_function) {
        if let View::Function { params, .. } | View::PrimFunc { params, .. } = body.view(expr) {
            for ty in params.iter().filter_map(|param| body.ty(param)) {
                known.find(ty.into(), |_| {});
            }
        }
    }
    let known = known.found;
    let mut used = Symbols::new(body.terms());
    for expr in body.post_order() {
        let dims = match body.kind(expr) {
            Kind::PRIM => Some(Term(body.raw_node(expr).data)),
            // What stands in the type of a function is its own.
            Kind::GLOBAL | Kind::FUNCTION => continue,
            _ => body.ty(expr).map(Term::from),
        };
        let Some(dims) = dims.filter(|dims| !used.seen.contains(dims)) else { continue };
        used.find(dims, |symbol| {
            if !known.contains(&symbol) {
                report.at(expr, || {
                    format!("the dimension `{}` stands in no parameter's type", subject.str(symbol))
                });
            }
        });
    }
}

/// The symbols in types, each term looked at once.
struct Symbols<'a> {
    terms: Terms<'a>,
    seen: FxHashSet<Term>,
    found: FxHashSet<Symbol>,
    waiting: Vec<Term>,
}

impl<'a> Symbols<'a> {
    fn new(terms: Terms<'a>) -> Self {
        let (seen, found) = (FxHashSet::default(), FxHashSet::default());
        Self { terms, seen, found, waiting: Vec::new() }
    }

    /// Calls `each` with the symbols below `term` that were not found before.
    fn find(&mut self, term: Term, mut each: impl FnMut(Symbol)) {
        self.waiting.push(term);
        while let Some(term) = self.waiting.pop() {
            // A function type binds its own symbols.
            if self.terms.kind(term) == TermKind::FUNC || !self.seen.insert(term) {
                continue;
            }
            match self.terms.dim(Dim(term.0)) {
                DimView::Symbol(name) => {
                    if self.found.insert(name) {
                        each(name);
                    }
                }
                _ => self.waiting.extend(self.terms.children(term)),
            }
        }
    }
}
