//! `erf`.
//!
//! Near zero `erf(x) = x + x*P(x^2)`. Further out the complement falls like `exp(-x^2)`, so its logarithm is
//! close to a polynomial: `erf(x) = 1 - exp(-Q(|x|))`, with the sign of `x`; from 4 on it is 1. Both are
//! fits of our own for the least greatest error relative to `erf` (Lawson's weighted least squares on
//! Chebyshev points), with errors of `4e-10` and `4e-11` before rounding.

use tenon_plugin_api::prelude::*;

use super::{Steps, exponential};

const NEAR: [f64; 7] = [
    8.382_390_661e-5,
    -8.145_597_531e-4,
    5.201_286_171e-3,
    -2.685_949_951e-2,
    1.128_369_719e-1,
    -3.761_263_49e-1,
    1.283_791_661e-1,
];

const FAR: [f64; 9] = [
    5.223_682_82e-7,
    1.430_493_012e-5,
    -3.966_708_318e-4,
    4.053_384_997e-3,
    -2.489_508_688e-2,
    1.080_118_045e-1,
    6.335_435_51e-1,
    1.129_434_109,
    -1.603_965_793e-4,
];

/// Below this the first polynomial holds.
const BORDER: f64 = 0.92;

/// `erf(x)` of an f32, to about one unit in the last place.
pub(super) fn erf(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let distance = steps.abs(x);
    let distance = steps.name("distance", distance);
    let bounded = steps.clamp(distance, 0.0, 4.0);
    let bounded = steps.name("bounded", bounded);
    let logarithm = steps.polynomial(bounded, &FAR);
    let zero = steps.number(x, 0.0);
    let logarithm = steps.sub(zero, logarithm);
    let logarithm = steps.name("falling", logarithm);
    let complement = exponential::exp(steps, logarithm);
    let one = steps.number(x, 1.0);
    let far = steps.sub(one, complement);
    let far = steps.name("far", far);
    let far = steps.with_sign_of(far, x);

    let square = steps.mul(x, x);
    let square = steps.name("square", square);
    let tail = steps.polynomial(square, &NEAR);
    let near = steps.fma(tail, x, x);
    let is_near = steps.compare(BinaryOp::Lt, distance, BORDER);
    let result = steps.select(is_near, near, far);
    steps.name("erf", result)
}
