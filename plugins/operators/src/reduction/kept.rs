//! What the gradients of reductions share.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

/// The axes that were reduced, all where none are given, and a tensor of the result's shape with these axes, of extent 1. A
/// number stays one: it is broadcast to any shape.
pub(crate) fn kept(
    at: &mut Adjoint<'_>,
    given: Option<&[i64]>,
    x: Expr,
) -> Result<(Vec<i64>, Expr)> {
    let (_, mut dims) = at.tensor(at.arg(0))?;
    let axes = at.axes(at.arg(0), given)?;
    if at.rank(x)? == 0 {
        return Ok((axes, x));
    }
    for &axis in &axes {
        dims[axis as usize] = at.with_cx(|cx| cx.dim(1));
    }
    Ok((axes, at.reshape(x, &dims)))
}

/// `g` to the elements that are the result, shared among equal ones.
pub(crate) fn shared(at: &mut Adjoint<'_>, given: Option<&[i64]>) -> Result<Grads> {
    let (axes, g) = kept(at, given, at.grad())?;
    let (_, y) = kept(at, given, at.value())?;
    let mask = at.indicator("equal", at.arg(0), y);
    let count = at.reduce("sum", mask, &axes, true);
    let share = at.div(g, count);
    Ok(Grads::of([at.mul(mask, share)]))
}
