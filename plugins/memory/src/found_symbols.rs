//! Extents that a function finds while it runs.

use std::collections::HashSet;

use tenon_plugin_api::ir::{DimView, Terms};
use tenon_plugin_api::prelude::*;

/// The symbols that stand for what the function computes.
pub(crate) fn found_symbols(body: BodyView<'_>) -> HashSet<Symbol> {
    let mut found = HashSet::new();
    for expr in body.post_order() {
        let View::Call { callee, attrs, .. } = body.view(expr) else { continue };
        if body.op_name(callee) != Some("bind_dims") {
            continue;
        }
        let Some(TermView::Type(ty)) = body.terms().attrs(attrs).get("ty") else { continue };
        if let TypeView::Shape(Some(dims)) = body.terms().ty(ty) {
            found.extend(dims.iter().filter_map(|&dim| match body.terms().dim(dim) {
                DimView::Symbol(name) => Some(name),
                _ => None,
            }));
        }
    }
    found
}

/// Whether an extent of a tensor depends on one of these symbols.
pub(crate) fn depends_on(terms: Terms<'_>, dims: &[Dim], symbols: &HashSet<Symbol>) -> bool {
    let mut pending: Vec<Term> = dims.iter().map(|&dim| dim.into()).collect();
    while let Some(term) = pending.pop() {
        match terms.dim(Dim(term.0)) {
            DimView::Symbol(name) if symbols.contains(&name) => return true,
            DimView::Symbol(_) => {}
            _ => pending.extend(terms.children(term)),
        }
    }
    false
}
