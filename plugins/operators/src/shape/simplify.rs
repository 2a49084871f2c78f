//! What simplifications of `reshape` and its kin share.

use tenon_plugin_api::rule::prelude::*;

/// The argument, where it has the shape of the result; or what it is a `reshape`, `expand_dims` or `squeeze` of, where that has.
pub(super) fn same_shape(at: &mut Site<'_>) -> Option<Expr> {
    at.same_type(at.arg(0)).or_else(|| {
        let source = source(at)?;
        at.same_type(source)
    })
}

/// What the argument is a `reshape`, `expand_dims` or `squeeze` of.
pub(super) fn source(at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    let inner = ["reshape", "expand_dims", "squeeze"].iter().find_map(|op| at.call_of(x, op))?;
    Some(inner.args[0])
}

/// `reshape`, `expand_dims` and `squeeze` of each other are one reshape; where the shape comes back, none.
pub(super) fn one_reshape(at: &mut Site<'_>) -> Option<Expr> {
    same_shape(at).or_else(|| {
        let source = source(at)?;
        reshaped(at, source)
    })
}

/// The argument in the shape of the result.
pub(super) fn as_reshape(at: &mut Site<'_>) -> Option<Expr> {
    reshaped(at, at.arg(0))
}

/// A tensor in the shape of the result, where that is known.
fn reshaped(at: &mut Site<'_>, x: Expr) -> Option<Expr> {
    let dims = at.terms().tensor(at.ty()?)?.1.to_vec();
    let reshaped = at.reshape(x, &dims);
    at.same_type(reshaped)
}
