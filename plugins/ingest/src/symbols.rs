//! Symbolic dimensions in types.

use std::collections::HashSet;

use tenon_plugin_api::ir::{DimView, TermKind, Terms};
use tenon_plugin_api::prelude::*;

/// The symbols in terms, each term looked at once.
#[derive(Default)]
pub(crate) struct Symbols {
    seen: HashSet<Term>,
    pub(crate) found: HashSet<Dim>,
}

impl Symbols {
    /// Adds those of a term. The type of a function binds its own symbols, which do not count.
    pub(crate) fn find(&mut self, terms: Terms<'_>, term: Option<Term>) {
        let mut pending: Vec<Term> = term.into_iter().collect();
        while let Some(term) = pending.pop() {
            if terms.kind(term) == TermKind::FUNC || !self.seen.insert(term) {
                continue;
            }
            match terms.kind(term) {
                TermKind::DIM_SYMBOL => drop(self.found.insert(Dim(term.0))),
                _ => pending.extend(terms.children(term)),
            }
        }
    }

    /// Adds those of a node: of its type, and of the dimension that it is.
    pub(crate) fn find_in(&mut self, body: BodyView<'_>, expr: Expr) {
        if matches!(body.kind(expr), Kind::FUNCTION | Kind::GLOBAL) {
            return;
        }
        self.find(body.terms(), body.ty(expr).map(Term::from));
        if let View::Prim { dim } = body.view(expr) {
            self.find(body.terms(), Some(dim.into()));
        }
    }
}

/// The symbols that a value of type `ty` says: those that are whole dimensions.
pub(crate) fn said_by(terms: Terms<'_>, ty: Option<Type>) -> Vec<Dim> {
    let mut pending: Vec<Type> = ty.into_iter().collect();
    let mut said = Vec::new();
    while let Some(ty) = pending.pop() {
        match terms.ty(ty) {
            TypeView::Tensor { dims: Some(dims), .. } | TypeView::Shape(Some(dims)) => said
                .extend(dims.iter().filter(|&&dim| matches!(terms.dim(dim), DimView::Symbol(_)))),
            TypeView::Tuple(fields) => pending.extend(fields),
            _ => {}
        }
    }
    said
}
