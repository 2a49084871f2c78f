//! The symbols of types.

use rustc_hash::FxHashSet;

use super::{Dim, DimView, Symbol, Terms, Type};

/// The symbols in the dimensions of the tensor types among `types`, in the order in which they are met.
pub fn symbols_of(terms: Terms<'_>, types: impl IntoIterator<Item = Type>) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    let mut seen: FxHashSet<Dim> = FxHashSet::default();
    let mut pending: Vec<Dim> = Vec::new();
    for ty in types {
        let dims = terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
        pending.extend(dims.iter().rev());
        while let Some(dim) = pending.pop() {
            if !seen.insert(dim) {
                continue;
            }
            match terms.dim(dim) {
                DimView::Symbol(name) => symbols.push(name),
                DimView::Add(parts) | DimView::Mul(parts) => pending.extend(parts.iter().rev()),
                DimView::FloorDiv(a, b)
                | DimView::FloorMod(a, b)
                | DimView::Min(a, b)
                | DimView::Max(a, b) => pending.extend([b, a]),
                DimView::Const(_) | DimView::Unknown(_) => {}
            }
        }
    }
    symbols
}
