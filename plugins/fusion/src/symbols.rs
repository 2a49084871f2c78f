//! The symbols that a function made of a group has to be told.
//!
//! ```ir
//! %y = add(%x, const([1, 2]))    f32[2*n], f32[2]     =>     fn @group(%x: f32[2*n], %dims: shape[n])
//! ```

use rustc_hash::FxHashSet;
use tenon_plugin_api::ir::{DimView, TermKind, Terms};
use tenon_plugin_api::prelude::*;

/// The symbols of dimensions in types, in the order of their first places.
pub(crate) struct Symbols<'a> {
    terms: Terms<'a>,
    seen: FxHashSet<Term>,
    /// What was added last: tensors of one type often follow each other.
    last: Option<Term>,
    work: Vec<Term>,
    /// Each as a dimension.
    pub(crate) found: Vec<Dim>,
}

impl<'a> Symbols<'a> {
    pub(crate) fn new(terms: Terms<'a>) -> Self {
        let (seen, last, work) = (FxHashSet::default(), None, Vec::new());
        Self { terms, seen, last, work, found: Vec::new() }
    }

    pub(crate) fn add(&mut self, term: Option<Term>) {
        if std::mem::replace(&mut self.last, term) == term {
            return;
        }
        self.work.extend(term);
        while let Some(term) = self.work.pop() {
            // Most dimensions are numbers, and the shape of a tensor is as soon read as looked up.
            let is_plain = matches!(self.terms.kind(term), TermKind::INT | TermKind::TENSOR);
            if !is_plain && !self.seen.insert(term) {
                continue;
            }
            match self.terms.view(term) {
                TermView::Dim(dim) => match self.terms.dim(dim) {
                    DimView::Symbol(_) => self.found.push(dim),
                    _ => self.work.extend(self.terms.children(term).iter().rev()),
                },
                // The type of a function binds its own symbols.
                TermView::Type(ty) if matches!(self.terms.ty(ty), TypeView::Func { .. }) => {}
                TermView::Type(_) => self.work.extend(self.terms.children(term).iter().rev()),
                _ => {}
            }
        }
    }

    /// Those that no whole dimension of `params` is: a function of such parameters has to be told them, since nobody solves for
    /// what stands within a computed dimension.
    pub(crate) fn unsaid_by(mut self, params: impl Iterator<Item = Type>) -> Vec<Dim> {
        let mut work: Vec<Type> = params.collect();
        work.iter().for_each(|&ty| self.add(Some(ty.into())));
        if self.found.is_empty() {
            return self.found;
        }
        let mut said: FxHashSet<Dim> = FxHashSet::default();
        while let Some(ty) = work.pop() {
            match self.terms.ty(ty) {
                TypeView::Tensor { dims: Some(dims), .. } | TypeView::Shape(Some(dims)) => {
                    said.extend(dims);
                }
                TypeView::Tuple(fields) => work.extend(fields),
                _ => {}
            }
        }
        self.found.retain(|symbol| !said.contains(symbol));
        self.found
    }
}
