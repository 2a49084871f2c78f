//! `erf`.
//!
//! Near zero `erf(x) = x + x*P(x^2)`. Further out the complement falls like `exp(-x^2)`, and its eighth root so slowly that it is
//! close to a polynomial: `erf(x) = 1 - Q(|x|)^8`, with the sign of `x`, in the manner of Abramowitz and Stegun, 7.1.28, but without
//! their division; from 3.95 on it is 1. Both are fits of our own for the least greatest error relative to `erf` (Lawson's weighted
//! least squares on Chebyshev points), with errors of `5e-10` and `1.4e-9` before rounding, and of two units in the last place behind it.
//!
//! Of f64 both are quotients of polynomials, from Cephes' `erf` and `erfc` (Moshier): `x*P(x^2)/Q(x^2)` below 1, and
//! `1 - exp(-x^2)*P(|x|)/Q(|x|)` above; from 6 on it is 1.

use tenon_plugin_api::prelude::*;

use super::{Steps, exponential};

const NEAR: [f64; 8] = [
    -7.979_491_422e-6,
    1.059_470_952e-4,
    -8.378_427_662e-4,
    5.212_731_63e-3,
    -2.686_206_421e-2,
    1.128_371_719e-1,
    -3.761_263_369e-1,
    1.283_791_665e-1,
];

/// Of the eighth root of the complement.
const FAR: [f64; 8] = [
    8.511_284_53e-6,
    5.629_941_318e-5,
    -2.051_216_553e-3,
    1.195_131_448e-2,
    -1.013_134_261e-2,
    -6.223_975_027e-2,
    -1.448_592_127e-1,
    1.000_846_063,
];

/// Below this the first polynomial holds.
const BORDER: f64 = 1.2;
/// From here on the second one gives 1.
const ONE: f64 = 3.95;

const NEAR_F64: [&[f64]; 2] = [
    &[
        9.604_973_739_870_516,
        9.002_601_972_038_427e1,
        2.232_005_345_946_843e3,
        7.003_325_141_128_051e3,
        5.559_230_130_103_949e4,
    ],
    &[
        1.0,
        3.356_171_416_475_031e1,
        5.213_579_497_801_527e2,
        4.594_323_829_709_801e3,
        2.262_900_006_138_909e4,
        4.926_739_426_086_359e4,
    ],
];

const FAR_F64: [&[f64]; 2] = [
    &[
        2.461_969_814_735_305e-10,
        5.641_895_648_310_688e-1,
        7.463_210_564_422_699,
        4.863_719_709_856_814e1,
        1.965_208_329_560_771e2,
        5.264_451_949_954_774e2,
        9.345_285_271_719_576e2,
        1.027_551_886_895_157_2e3,
        5.575_353_353_693_993e2,
    ],
    &[
        1.0,
        1.322_819_511_547_449_9e1,
        8.670_721_408_859_897e1,
        3.549_377_788_878_199e2,
        9.757_085_017_432_055e2,
        1.823_909_166_879_097_4e3,
        2.246_337_608_187_109_8e3,
        1.656_663_091_941_613_5e3,
        5.575_353_408_177_276e2,
    ],
];

/// `erf(x)` of an f32 or an f64, to about one unit in the last place.
pub(super) fn erf(steps: &mut Steps<'_>, x: Expr) -> Expr {
    match steps.is_f64(x) {
        true => erf_f64(steps, x),
        false => erf_f32(steps, x),
    }
}

fn erf_f64(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let distance = steps.abs(x);
    let distance = steps.name("distance", distance);
    let bounded = steps.clamp(distance, 0.0, 6.0);
    let bounded = steps.name("bounded", bounded);
    let zero = steps.number(x, 0.0);
    let square = steps.mul(bounded, bounded);
    let falling = steps.sub(zero, square);
    let falling = steps.name("falling", falling);
    let complement = exponential::exp(steps, falling);
    let factor = steps.quotient(bounded, FAR_F64);
    let complement = steps.mul(complement, factor);
    let one = steps.number(x, 1.0);
    let far = steps.sub(one, complement);
    let far = steps.name("far", far);

    let square = steps.mul(x, x);
    let square = steps.name("square", square);
    let near = steps.quotient(square, NEAR_F64);
    let near = steps.mul(near, x);
    let is_near = steps.compare(BinaryOp::Lt, distance, 1.0);
    let result = steps.select(is_near, near, far);
    let result = steps.with_sign_of(result, x);
    steps.name("erf", result)
}

fn erf_f32(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let distance = steps.abs(x);
    let distance = steps.name("distance", distance);
    let bounded = steps.at_most(distance, ONE);
    let bounded = steps.name("bounded", bounded);
    let mut root = steps.polynomial(bounded, &FAR);
    for _ in 0..2 {
        root = steps.name("root", root);
        root = steps.mul(root, root);
    }
    let root = steps.name("root", root);
    let zero = steps.number(x, 0.0);
    let negative = steps.sub(zero, root);
    let one = steps.number(x, 1.0);
    let far = steps.fma(negative, root, one);
    let far = steps.name("far", far);

    let square = steps.mul(x, x);
    let square = steps.name("square", square);
    let tail = steps.polynomial(square, &NEAR);
    let near = steps.fma(tail, x, x);
    let is_near = steps.compare(BinaryOp::Lt, distance, BORDER);
    let result = steps.select(is_near, near, far);
    let result = steps.with_sign_of(result, x);
    steps.name("erf", result)
}
