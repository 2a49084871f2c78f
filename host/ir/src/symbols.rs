//! The symbols of dimensions.

use rustc_hash::FxHashSet;

use super::{Dim, DimView, Symbol, Terms, Type};

/// The symbols in the dimensions of the tensor types among `types`, in the order in which they are met.
pub fn symbols_of(terms: Terms<'_>, types: impl IntoIterator<Item = Type>) -> Vec<Symbol> {
    let dims_of = |ty| terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
    symbols_in(terms, types.into_iter().flat_map(dims_of).copied()).collect()
}

/// The symbols in `dims`, each once, in the order in which they are written. Nothing recurses, and no part is looked at
/// twice.
pub fn symbols_in<D: IntoIterator<Item = Dim>>(
    terms: Terms<'_>,
    dims: D,
) -> impl Iterator<Item = Symbol> {
    let mut pending: Vec<Dim> = dims.into_iter().collect();
    pending.reverse();
    let mut seen: FxHashSet<Dim> = FxHashSet::default();
    std::iter::from_fn(move || {
        while let Some(dim) = pending.pop() {
            if !seen.insert(dim) {
                continue;
            }
            match terms.dim(dim) {
                DimView::Symbol(name) => return Some(name),
                DimView::Add(parts) | DimView::Mul(parts) => pending.extend(parts.iter().rev()),
                DimView::FloorDiv(a, b)
                | DimView::FloorMod(a, b)
                | DimView::Min(a, b)
                | DimView::Max(a, b) => pending.extend([b, a]),
                DimView::Const(_) | DimView::Unknown(_) => {}
            }
        }
        None
    })
}
