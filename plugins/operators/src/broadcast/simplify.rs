//! What simplifications of arithmetic share. They are exact, for infinities, zeros with a sign and what is no number as
//! well, but for the one that says so.

use tenon_plugin_api::rule::prelude::*;

/// The first argument, where the second one is a number that changes nothing; and the other way round, where that is allowed.
pub(super) fn neutral(
    at: &mut Site<'_>,
    is_commutative: bool,
    is_neutral: impl Fn(f64) -> bool,
) -> Option<Expr> {
    let [a, b] = at.args()?;
    let mut kept = |argument, other| {
        let changes_nothing = at.splat(other).is_some_and(&is_neutral);
        changes_nothing.then(|| at.same_type(argument)).flatten()
    };
    kept(a, b).or_else(|| is_commutative.then(|| kept(b, a)).flatten())
}

/// Zeros of the type of a call whose result is of integers.
pub(super) fn zeros(at: &mut Site<'_>) -> Option<Expr> {
    let (dtype, shape) = at.terms().static_tensor(at.ty()?)?;
    if !dtype.is_int() {
        return None;
    }
    let zero = at.number(dtype, 0.0)?;
    if shape.is_empty() {
        return Some(zero);
    }
    let dims: Vec<Dim> = shape.iter().map(|&extent| at.cx().dim(extent)).collect();
    let shape = at.shape(&dims);
    Some(at.apply("broadcast_to", &[zero, shape]))
}

/// The other argument and the constant one, where exactly one is constant.
pub(super) fn split_constant(at: &mut Site<'_>, args: &[Expr]) -> Option<(Expr, Expr)> {
    let &[a, b] = args else { return None };
    match (at.is_constant(a), at.is_constant(b)) {
        (false, true) => Some((a, b)),
        (true, false) => Some((b, a)),
        _ => None,
    }
}

/// `f(…, x, x) => x`: what is one of two equals is either.
pub(crate) fn equal_arguments(at: &mut Site<'_>) -> Option<Expr> {
    let &[.., a, b] = at.call.args.as_slice() else { return None };
    let are_equal = at.definition(a) == at.definition(b);
    are_equal.then(|| at.same_type(a)).flatten()
}
