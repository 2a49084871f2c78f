//! `sin` and `cos`.
//!
//! The nearest multiple of half a turn is taken away in three parts that leave no rounding error, which
//! keeps the digits for angles up to some thousands; an odd multiple turns the sign. `cos` takes away
//! odd multiples of a quarter turn and is then a sine as well. The polynomial is that of Cephes' `sinf`
//! (Moshier), continued by Taylor's terms up to the quarter turn. Infinity and nan give nan.

use tenon_plugin_api::prelude::*;

use super::Steps;

/// Half a turn in parts of few bits.
const PI: [f64; 3] = [3.140_625, 9.675_025_939_941_406e-4, 1.509_957_990_978_376_4e-7];

/// Taylor's coefficients from `x^13` down to `x^3`.
const SIN: [f64; 6] = [
    1.0 / 6_227_020_800.0,
    -1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    -1.0 / 5_040.0,
    1.0 / 120.0,
    -1.0 / 6.0,
];

const MAGIC: f64 = 12_582_912.0;

/// `sin(x)` of an f32.
pub(super) fn sin(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let magic = steps.number(x, MAGIC);
    let count = steps.fma_by(x, std::f64::consts::FRAC_1_PI, magic);
    let count = steps.name("n_bits", count);
    let n = steps.sub(count, magic);
    let n = steps.name("n", n);
    reduced_sine(steps, x, n, count)
}

/// `cos(x) = -sin(x - (n + 1/2)*pi)` for even `n`, and its negative for odd ones.
pub(super) fn cos(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let magic = steps.number(x, MAGIC);
    let minus_half = steps.number(x, -0.5);
    let turns = steps.fma_by(x, std::f64::consts::FRAC_1_PI, minus_half);
    let count = steps.add(turns, magic);
    let count = steps.name("n_bits", count);
    let n = steps.sub(count, magic);
    let half = steps.number(x, 0.5);
    let n = steps.add(n, half);
    let n = steps.name("n", n);
    let one = steps.number(x, 1.0);
    let odd = steps.add(count, one);
    reduced_sine(steps, x, n, odd)
}

/// `sin(x - n*pi)`, negated where the lowest bit of `parity` is set.
fn reduced_sine(steps: &mut Steps<'_>, x: Expr, n: Expr, parity: Expr) -> Expr {
    let r = PI.iter().fold(x, |r, &part| steps.fma_by(n, -part, r));
    let r = steps.name("r", r);
    let square = steps.mul(r, r);
    let square = steps.name("square", square);
    let tail = steps.polynomial(square, &SIN);
    let tail = steps.mul(tail, square);
    let sine = steps.fma(tail, r, r);
    let bits = steps.bits(sine);
    let parity = steps.bits(parity);
    // An odd parity turns the sign.
    let sign = steps.shift("shl", parity, 31);
    let turned = steps.rw.intrinsic("bitxor", &[bits, sign]);
    let result = steps.float_of_bits(turned);
    steps.name("sine", result)
}
