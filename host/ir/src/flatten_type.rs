//! Types without tuples.

use super::{Terms, Type, TypeView};

/// The tensor types among `types`, with tuples flattened, in order.
pub fn flatten_type(terms: Terms<'_>, types: &[Type]) -> Vec<Type> {
    let mut tensors = Vec::with_capacity(types.len());
    let mut pending: Vec<Type> = types.iter().rev().copied().collect();
    while let Some(ty) = pending.pop() {
        match terms.ty(ty) {
            TypeView::Tensor { .. } => tensors.push(ty),
            TypeView::Tuple(fields) => pending.extend(fields.iter().rev()),
            _ => {}
        }
    }
    tensors
}
