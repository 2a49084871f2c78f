//! Operators whose arguments are broadcast against each other: contributions are summed over what was repeated.

use tenon_plugin_api::prelude::*;

use crate::gradient::step::{Grad, Grads, Step};

/// The contributions to both arguments.
fn both(s: &mut Step<'_>, a: Expr, b: Expr) -> Grads {
    let a = s.sum_to(a, s.arg(0))?;
    let b = s.sum_to(b, s.arg(1))?;
    Ok(vec![Grad::Of(a), Grad::Of(b)])
}

/// `g`, `g`.
pub(super) fn add(s: &mut Step<'_>) -> Grads {
    both(s, s.grad(), s.grad())
}

/// `g`, `-g`.
pub(super) fn subtract(s: &mut Step<'_>) -> Grads {
    let g = s.grad();
    let negated = s.op("negative", &[g]);
    both(s, g, negated)
}

/// `g b`, `g a`.
pub(super) fn multiply(s: &mut Step<'_>) -> Grads {
    let a = s.mul(s.grad(), s.arg(1));
    let b = s.mul(s.grad(), s.arg(0));
    both(s, a, b)
}

/// `g / b`, `-g y / b`.
pub(super) fn divide(s: &mut Step<'_>) -> Grads {
    let a = s.div(s.grad(), s.arg(1));
    let product = s.mul(a, s.value);
    let b = s.op("negative", &[product]);
    both(s, a, b)
}

/// `g` to the larger one, to the first of equal ones.
pub(super) fn maximum(s: &mut Step<'_>) -> Grads {
    chosen(s, ["greater_equal", "less"])
}

/// `g` to the smaller one, to the first of equal ones.
pub(super) fn minimum(s: &mut Step<'_>) -> Grads {
    chosen(s, ["less_equal", "greater"])
}

fn chosen(s: &mut Step<'_>, comparisons: [&str; 2]) -> Grads {
    let [a, b] = comparisons.map(|comparison| s.masked(comparison, s.arg(0), s.arg(1), s.grad()));
    both(s, a, b)
}

/// `g b a^(b - 1)`, `g y log a`.
pub(super) fn power(s: &mut Step<'_>) -> Grads {
    let (x, exponent) = (s.arg(0), s.arg(1));
    let less = s.plus(exponent, -1.0);
    let slope = s.op("power", &[x, less]);
    let slope = s.mul(exponent, slope);
    let a = s.mul(s.grad(), slope);
    let log = s.op("log", &[x]);
    let growth = s.mul(s.value, log);
    let b = s.mul(s.grad(), growth);
    both(s, a, b)
}

/// `g` where the condition holds, and elsewhere.
pub(super) fn choose(s: &mut Step<'_>) -> Grads {
    let (condition, g) = (s.arg(0), s.grad());
    let zero = s.number(g, 0.0);
    let a = s.op("where", &[condition, g, zero]);
    let b = s.op("where", &[condition, zero, g]);
    let a = s.sum_to(a, s.arg(1))?;
    let b = s.sum_to(b, s.arg(2))?;
    Ok(vec![Grad::Zero, Grad::Of(a), Grad::Of(b)])
}
