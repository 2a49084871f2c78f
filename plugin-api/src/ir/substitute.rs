//! Puts dimensions in the place of symbols.

use std::collections::HashMap;

use crate::ir::{Context, Dim, DimView, Symbol, Term, TermKind, Type, TypeView};

/// Dimensions that stand in the place of symbols. What a term becomes is remembered, so that applying it to
/// many terms costs no more than looking at each part once.
#[derive(Clone, Default, Debug)]
pub struct Substitution {
    symbols: HashMap<Symbol, Dim>,
    done: HashMap<Term, Term>,
}

impl Substitution {
    /// One that leaves everything as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no symbol has anything in its place.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Puts `dim` in the place of the symbol `name`, and of what stood there before.
    pub fn bind(&mut self, name: Symbol, dim: Dim) {
        self.symbols.insert(name, dim);
        self.done.clear();
    }

    /// What stands in the place of the symbol `name`.
    pub fn get(&self, name: Symbol) -> Option<Dim> {
        self.symbols.get(&name).copied()
    }

    /// `term`, a dimension, a type, attributes or any other term, with dimensions in the place of symbols.
    pub fn apply(&mut self, cx: &(impl Context + ?Sized), term: impl Into<Term>) -> Term {
        let symbols = &self.symbols;
        match symbols.is_empty() {
            true => term.into(),
            false => {
                substitute(cx, term.into(), |name| symbols.get(&name).copied(), &mut self.done)
            }
        }
    }

    /// Binds symbols so that the type `declared` of a parameter becomes `given`, that of an argument: a
    /// symbol that is a whole dimension is bound to the one it meets first. Returns whether both are equal
    /// then. It does not bind within types of functions, which have symbols of their own.
    pub fn match_type(
        &mut self,
        cx: &(impl Context + ?Sized),
        declared: Type,
        given: Type,
    ) -> bool {
        let terms = cx.terms();
        let mut pending = vec![(declared, given)];
        while let Some((declared, given)) = pending.pop() {
            let (old, new) = match (terms.ty(declared), terms.ty(given)) {
                (
                    TypeView::Tensor { dims: Some(old), .. },
                    TypeView::Tensor { dims: Some(new), .. },
                )
                | (TypeView::Shape(Some(old)), TypeView::Shape(Some(new))) => (old, new),
                (TypeView::Tuple(old), TypeView::Tuple(new)) => {
                    pending.extend(old.iter().copied().zip(new.iter().copied()).rev());
                    continue;
                }
                _ => continue,
            };
            for (&old, &new) in old.iter().zip(new) {
                if let DimView::Symbol(name) = terms.dim(old)
                    && self.get(name).is_none()
                {
                    self.bind(name, new);
                }
            }
        }
        self.apply(cx, declared) == given.into()
    }
}

/// `term` with what `lookup` says in the place of symbols. Each part of it is looked at once, without recursion;
/// `done` holds what parts became before, and gains what they become.
pub fn substitute<S: std::hash::BuildHasher>(
    cx: &(impl Context + ?Sized),
    term: Term,
    lookup: impl Fn(Symbol) -> Option<Dim>,
    done: &mut HashMap<Term, Term, S>,
) -> Term {
    let terms = cx.terms();
    let mut stack = vec![term];
    while let Some(&next) = stack.last() {
        if done.contains_key(&next) {
            stack.pop();
            continue;
        }
        let children = terms.children(next);
        let waiting = stack.len();
        stack.extend(children.iter().filter(|child| !done.contains_key(child)));
        if stack.len() > waiting {
            continue;
        }
        stack.pop();
        let rebuilt: Vec<Term> = children.iter().map(|child| done[child]).collect();
        let raw = terms.raw(next);
        let dim = |index: usize| Dim(rebuilt[index].0);
        let result = match (TermKind(raw.kind), rebuilt.len()) {
            (TermKind::DIM_SYMBOL, 1) => {
                lookup(Symbol(children[0].0)).map_or(next, |dim| dim.into())
            }
            _ if rebuilt == children => next,
            (TermKind::DIM_ADD, 1..) => {
                let parts: Vec<(Dim, i64)> = (0..rebuilt.len()).map(|i| (dim(i), 1)).collect();
                cx.dim_sum(&parts).into()
            }
            (TermKind::DIM_MUL, 1..) => {
                let parts: Vec<Dim> = (0..rebuilt.len()).map(dim).collect();
                cx.dim_product(&parts).into()
            }
            (TermKind::DIM_FLOOR_DIV, 2) => cx.dim_floor_div(dim(0), dim(1)).into(),
            (TermKind::DIM_FLOOR_MOD, 2) => cx.dim_floor_mod(dim(0), dim(1)).into(),
            (TermKind::DIM_MIN, 2) => cx.dim_min(dim(0), dim(1)).into(),
            (TermKind::DIM_MAX, 2) => cx.dim_max(dim(0), dim(1)).into(),
            (kind, _) => cx.intern(kind, raw.flags, raw.bits, &rebuilt),
        };
        done.insert(next, result);
    }
    done[&term]
}
