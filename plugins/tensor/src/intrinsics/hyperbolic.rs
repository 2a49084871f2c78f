//! `sigmoid`, `tanh`, `sinh` and `cosh`.
//!
//! The first two go through `exp` of a negative number, which cannot leave the range; `tanh` takes it less one, whose digits are all
//! there near zero.
//!
//! `sinh` and `cosh` are computed in f64, and rounded once where less is asked for. Near zero `sinh` is Taylor's polynomial. Where
//! `exp` would leave the range and they do not, they are made of the exponential of the half.

use tenon_plugin_api::prelude::*;

use super::{Steps, exponential};

/// `1 / (1 + exp(-x))`, which is also `exp(x) / (1 + exp(x))`; of an f32 or an f64.
pub(super) fn sigmoid(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let distance = steps.abs(x);
    let zero = steps.number(x, 0.0);
    let falling = steps.sub(zero, distance);
    let falling = steps.name("falling", falling);
    let exp = exponential::exp(steps, falling);
    let one = steps.number(x, 1.0);
    let sum = steps.add(one, exp);
    let is_negative = steps.compare(BinaryOp::Lt, x, 0.0);
    let numerator = steps.select(is_negative, exp, one);
    let result = steps.div(numerator, sum);
    steps.name("sigmoid", result)
}

/// `tanh(x)` of an f32 or an f64: `-t / (2 + t)` with `t = exp(-2*|x|) - 1`, with the sign of `x`.
pub(super) fn tanh(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let distance = steps.abs(x);
    let minus_two = steps.number(x, -2.0);
    let falling = steps.mul(distance, minus_two);
    let falling = steps.name("falling", falling);
    let less = exponential::exp_less_one(steps, falling);
    let two = steps.number(x, 2.0);
    let below = steps.add(less, two);
    let result = steps.div(less, below);
    let result = steps.with_sign_of(result, x);
    steps.name("tanh", result)
}

/// `1/k!` for odd `k` from 19 down to 3.
const SINH: [f64; 9] = [
    1.0 / 121_645_100_408_832_000.0,
    1.0 / 355_687_428_096_000.0,
    1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    1.0 / 5_040.0,
    1.0 / 120.0,
    1.0 / 6.0,
];

/// Above this an exponential of f64 is near the end of the range.
const LARGE: f64 = 700.0;

/// `sinh(x)` of an f64, to about two units in the last place.
pub(super) fn sinh(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let [rising, falling] = half_exponentials(steps, x);
    let far = steps.sub(rising, falling);
    let far = steps.name("far", far);
    let square = steps.mul(x, x);
    let square = steps.name("square", square);
    let tail = steps.polynomial(square, &SINH);
    let tail = steps.mul(tail, square);
    let near = steps.fma(tail, x, x);
    let size = steps.abs(x);
    let is_near = steps.compare(BinaryOp::Lt, size, 1.0);
    let result = steps.select(is_near, near, far);
    let result = steps.with_sign_of(result, x);
    steps.name("sinh", result)
}

/// `cosh(x)` of an f64, to about two units in the last place.
pub(super) fn cosh(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let [rising, falling] = half_exponentials(steps, x);
    let result = steps.add(rising, falling);
    steps.name("cosh", result)
}

/// `exp(|x|)/2` and `exp(-|x|)/2`.
fn half_exponentials(steps: &mut Steps<'_>, x: Expr) -> [Expr; 2] {
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let is_large = steps.compare(BinaryOp::Gt, size, LARGE);
    let is_large = steps.name("is_large", is_large);
    let half = steps.number(x, 0.5);
    let less = steps.mul(size, half);
    let exponent = steps.select(is_large, less, size);
    let exponent = steps.name("exponent", exponent);
    let exp = exponential::exp(steps, exponent);
    let rising = steps.mul(exp, half);
    let rising = steps.name("rising", rising);
    let falling = steps.div(half, exp);
    let squared = steps.mul(rising, exp);
    let zero = steps.number(x, 0.0);
    [steps.select(is_large, squared, rising), steps.select(is_large, zero, falling)]
}
