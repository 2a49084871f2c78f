//! What the gradients of products share.

use tenon_plugin_api::rule::prelude::*;

/// A product of matrices, each transposed or not.
pub(crate) fn product(at: &mut Adjoint<'_>, a: (Expr, bool), b: (Expr, bool)) -> Expr {
    let flags = [("transpose_a", a.1), ("transpose_b", b.1)];
    let attrs: Vec<(&str, AttrValue)> =
        flags.into_iter().filter(|flag| flag.1).map(|(name, flag)| (name, flag.into())).collect();
    at.apply_with("matmul", &[a.0, b.0], &attrs)
}
