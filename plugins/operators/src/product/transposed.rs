//! What the gradients of products share.

use tenon_plugin_api::rule::prelude::*;

/// The adjoint of a product in the element type of its arguments: sums may be wider.
pub(crate) fn narrowed(at: &mut Adjoint<'_>) -> Expr {
    match at.dtype(at.arg(0)) {
        Some(dtype) => at.in_dtype(at.grad(), dtype),
        None => at.grad(),
    }
}

/// A product of matrices, each transposed or not.
pub(crate) fn product(at: &mut Adjoint<'_>, a: (Expr, bool), b: (Expr, bool)) -> Expr {
    let flags = [("transpose_a", a.1), ("transpose_b", b.1)];
    let attrs: Vec<(&str, AttrValue)> =
        flags.into_iter().filter(|flag| flag.1).map(|(name, flag)| (name, flag.into())).collect();
    at.apply_with("matmul", &[a.0, b.0], &attrs)
}
