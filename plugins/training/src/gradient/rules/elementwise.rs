//! Operators on each element by itself.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use tenon_plugin_api::prelude::*;

use crate::gradient::step::{Grad, Grads, Step, one};

/// `g`.
pub(super) fn identity(s: &mut Step<'_>) -> Grads {
    one(s.grad())
}

/// `-g`.
pub(super) fn negative(s: &mut Step<'_>) -> Grads {
    let g = s.grad();
    one(s.op("negative", &[g]))
}

/// `g y`.
pub(super) fn exp(s: &mut Step<'_>) -> Grads {
    one(s.mul(s.grad(), s.value))
}

/// `g / x`.
pub(super) fn log(s: &mut Step<'_>) -> Grads {
    one(s.div(s.grad(), s.arg(0)))
}

/// `g / (2 y)`.
pub(super) fn sqrt(s: &mut Step<'_>) -> Grads {
    let half = s.scale(s.grad(), 0.5);
    one(s.div(half, s.value))
}

/// `-g y^3 / 2`.
pub(super) fn rsqrt(s: &mut Step<'_>) -> Grads {
    let square = s.mul(s.value, s.value);
    let cube = s.mul(square, s.value);
    let factor = s.scale(cube, -0.5);
    one(s.mul(s.grad(), factor))
}

/// `g cos x`.
pub(super) fn sin(s: &mut Step<'_>) -> Grads {
    let cos = s.op("cos", &[s.arg(0)]);
    one(s.mul(s.grad(), cos))
}

/// `-g sin x`.
pub(super) fn cos(s: &mut Step<'_>) -> Grads {
    let sin = s.op("sin", &[s.arg(0)]);
    let product = s.mul(s.grad(), sin);
    one(s.op("negative", &[product]))
}

/// `g y (1 - y)`.
pub(super) fn sigmoid(s: &mut Step<'_>) -> Grads {
    let square = s.mul(s.value, s.value);
    let slope = s.sub(s.value, square);
    one(s.mul(s.grad(), slope))
}

/// `g (1 - y^2)`.
pub(super) fn tanh(s: &mut Step<'_>) -> Grads {
    let square = s.mul(s.value, s.value);
    let one_number = s.number(square, 1.0);
    let slope = s.sub(one_number, square);
    one(s.mul(s.grad(), slope))
}

/// `g 2 / sqrt(pi) exp(-x^2)`.
pub(super) fn erf(s: &mut Step<'_>) -> Grads {
    let square = s.mul(s.arg(0), s.arg(0));
    let exponent = s.op("negative", &[square]);
    let bell = s.op("exp", &[exponent]);
    let slope = s.scale(bell, FRAC_2_SQRT_PI);
    one(s.mul(s.grad(), slope))
}

/// `g` where `x > 0`.
pub(super) fn relu(s: &mut Step<'_>) -> Grads {
    let zero = s.number(s.arg(0), 0.0);
    one(s.masked("greater", s.arg(0), zero, s.grad()))
}

/// `g` where `x > 0`, `alpha g` elsewhere.
pub(super) fn leaky_relu(s: &mut Step<'_>) -> Grads {
    let alpha = s.attrs().float("alpha").unwrap_or(0.01);
    let zero = s.number(s.arg(0), 0.0);
    let is_positive = s.op("greater", &[s.arg(0), zero]);
    let g = s.grad();
    let small = s.scale(g, alpha);
    one(s.op("where", &[is_positive, g, small]))
}

/// `g` with the sign of `x`; 0 where that is 0.
pub(super) fn abs(s: &mut Step<'_>) -> Grads {
    let zero = s.number(s.arg(0), 0.0);
    let up = s.masked("greater", s.arg(0), zero, s.grad());
    let down = s.masked("less", s.arg(0), zero, s.grad());
    one(s.sub(up, down))
}

/// `g` where `min <= x <= max`.
pub(super) fn clip(s: &mut Step<'_>) -> Grads {
    let bound = |s: &Step<'_>, name| s.attrs().float(name).filter(|bound| bound.is_finite());
    let (min, max) = (bound(s, "min"), bound(s, "max"));
    let mut g = s.grad();
    for (bound, comparison) in [(min, "greater_equal"), (max, "less_equal")] {
        if let Some(bound) = bound {
            let bound = s.number(s.arg(0), bound);
            g = s.masked(comparison, s.arg(0), bound, g);
        }
    }
    one(g)
}

/// `g (P + x p)`, the distribution and the density of the normal distribution at `x`.
pub(super) fn gelu(s: &mut Step<'_>) -> Grads {
    let x = s.arg(0);
    let scaled = s.scale(x, FRAC_1_SQRT_2);
    let erf = s.op("erf", &[scaled]);
    let sum = s.plus(erf, 1.0);
    let distribution = s.scale(sum, 0.5);
    let square = s.mul(x, x);
    let exponent = s.scale(square, -0.5);
    let bell = s.op("exp", &[exponent]);
    let density = s.scale(bell, 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
    let tail = s.mul(x, density);
    let slope = s.add(distribution, tail);
    one(s.mul(s.grad(), slope))
}

/// `g (s + y (1 - s))`, where `s` is `sigmoid(x)`.
pub(super) fn silu(s: &mut Step<'_>) -> Grads {
    let sigmoid = s.op("sigmoid", &[s.arg(0)]);
    let product = s.mul(s.value, sigmoid);
    let rest = s.sub(s.value, product);
    let slope = s.add(sigmoid, rest);
    one(s.mul(s.grad(), slope))
}

/// `g` in the type of `x`; nothing where one of them is no float.
pub(super) fn cast(s: &mut Step<'_>) -> Grads {
    let ty = s.rw.body().ty(s.arg(0)).map(|ty| s.rw.terms().ty(ty));
    match ty {
        Some(TypeView::Tensor { dtype, .. }) if dtype.is_float() => {
            let name = dtype.to_string();
            let g = s.grad();
            one(s.rw.apply_with("cast", &[g], &[("dtype", name.into())]))
        }
        _ => Ok(vec![Grad::Zero]),
    }
}
