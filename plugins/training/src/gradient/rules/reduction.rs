//! Reductions along axes.

use tenon_plugin_api::prelude::*;

use crate::gradient::step::{Grads, Step, one};

/// The axes that were reduced, and a tensor of the result's shape with these axes, of extent 1. A number stays
/// one: it is broadcast to any shape.
fn kept(s: &mut Step<'_>, x: Expr) -> Result<(Vec<i64>, Expr)> {
    let (_, mut dims) = s.tensor(s.arg(0))?;
    let axes = s.axes("axis", dims.len() as i64);
    if s.rank(x)? == 0 {
        return Ok((axes, x));
    }
    for &axis in &axes {
        dims[axis as usize] = s.rw.cx().dim(1);
    }
    Ok((axes, s.rw.reshape(x, &dims)))
}

/// `g`, repeated.
pub(super) fn sum(s: &mut Step<'_>) -> Grads {
    let (_, g) = kept(s, s.grad())?;
    one(s.broadcast_like(g, s.arg(0))?)
}

/// `g / count`, repeated.
pub(super) fn mean(s: &mut Step<'_>) -> Grads {
    let (axes, g) = kept(s, s.grad())?;
    let ones = s.number(s.arg(0), 1.0);
    let ones = s.broadcast_like(ones, s.arg(0))?;
    let count = s.reduce("sum", ones, &axes, true);
    let g = s.div(g, count);
    one(s.broadcast_like(g, s.arg(0))?)
}

/// `g` to the elements that are the result, shared among equal ones.
pub(super) fn extreme(s: &mut Step<'_>) -> Grads {
    let (axes, g) = kept(s, s.grad())?;
    let (_, y) = kept(s, s.value)?;
    let mask = s.indicator("equal", s.arg(0), y);
    let count = s.reduce("sum", mask, &axes, true);
    let share = s.div(g, count);
    one(s.mul(mask, share))
}

/// `g` times the product of the other elements: `y / x`, and where one element alone is 0, to that one the
/// product of the others.
pub(super) fn prod(s: &mut Step<'_>) -> Grads {
    let x = s.arg(0);
    let (axes, g) = kept(s, s.grad())?;
    let (_, y) = kept(s, s.value)?;
    let zero = s.number(x, 0.0);
    let is_zero = s.op("equal", &[x, zero]);
    let one_number = s.number(x, 1.0);
    let filled = s.op("where", &[is_zero, one_number, x]);
    let rest = s.reduce("prod", filled, &axes, true);
    let zeros = s.indicator("equal", x, zero);
    let count = s.reduce("sum", zeros, &axes, true);
    let alone = s.masked("equal", count, one_number, rest);
    let quotient = s.div(y, filled);
    let others = s.op("where", &[is_zero, alone, quotient]);
    one(s.mul(g, others))
}
