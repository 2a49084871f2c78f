//! `asin`, `acos` and `atan`.
//!
//! All of them are computed in f64, and rounded once where less is asked for. Near zero `asin(x) = x + x^3*P(x^2)`. Further out the
//! angle is half a turn of the other one: `asin(x) = pi/2 - 2*asin(sqrt((1 - x)/2))`, whose argument is at most one half.
//! `atan` is a polynomial as well once the argument is below `tan(pi/8)`, by `atan(x) = pi/4 + atan((x - 1)/(x + 1))` and
//! `atan(x) = pi/2 - atan(1/x)`. Beyond one `asin` and `acos` are nan.
//!
//! The polynomials are fits of our own at Chebyshev's points, with errors below a hundredth of the last place.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use tenon_plugin_api::prelude::*;

use super::Steps;

/// Up to one half.
const ASIN: [f64; 13] = [
    2.875_785_136_742_156_6e-2,
    -1.485_188_707_124_720_4e-2,
    1.740_087_944_269_402e-2,
    5.457_506_718_640_358e-3,
    1.032_281_435_018_578e-2,
    1.147_917_741_518_490_6e-2,
    1.397_121_297_355_293_3e-2,
    1.735_239_272_086_997_3e-2,
    2.237_217_294_214_989e-2,
    3.038_194_413_853_124_7e-2,
    4.464_285_714_635_543e-2,
    7.499_999_999_998_433e-2,
    1.666_666_666_666_666_9e-1,
];

/// Up to `tan(pi/8)`.
const ATAN: [f64; 12] = [
    1.628_357_235_648_259e-2,
    -3.456_859_066_860_69e-2,
    4.551_516_563_590_310_4e-2,
    -5.230_437_464_251_687_4e-2,
    5.878_926_715_756_726e-2,
    -6.666_424_687_246_5e-2,
    7.692_296_363_979_952e-2,
    -9.090_908_753_118_594e-2,
    1.111_111_110_514_776_4e-1,
    -1.428_571_428_565_974_8e-1,
    1.999_999_999_999_980_4e-1,
    -3.333_333_333_333_333e-1,
];

/// What the last place of `pi/2` does not show.
const FRAC_PI_2_LOW: f64 = 6.123_233_995_736_766e-17;

/// `tan(pi/8)` and `tan(3*pi/8)`.
const ATAN_BORDERS: [f64; 2] = [0.414_213_562_373_095_03, 2.414_213_562_373_095];

/// The sine's inverse of an f64, to about two units in the last place.
pub(super) fn asin(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let parts = Parts::of(steps, x);
    let near = steps.fma(parts.tail, x, x);
    let twice = steps.add(parts.other, parts.other);
    let low = steps.number(x, FRAC_PI_2_LOW);
    let rest = steps.sub(twice, low);
    let quarter = steps.number(x, FRAC_PI_2);
    let far = steps.sub(quarter, rest);
    let far = steps.name("far", far);
    let result = steps.select(parts.is_near, near, far);
    let result = steps.with_sign_of(result, x);
    steps.name("asin", result)
}

/// The cosine's inverse of an f64, to about two units in the last place.
pub(super) fn acos(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let parts = Parts::of(steps, x);
    let low = steps.number(x, FRAC_PI_2_LOW);
    let zero = steps.number(x, 0.0);
    let less = steps.sub(zero, x);
    let bent = steps.fma(parts.tail, less, low);
    let rest = steps.sub(x, bent);
    let quarter = steps.number(x, FRAC_PI_2);
    let near = steps.sub(quarter, rest);
    let above = steps.add(parts.other, parts.other);
    let above = steps.name("above", above);
    let low = steps.number(x, 2.0 * FRAC_PI_2_LOW);
    let rest = steps.sub(above, low);
    let half = steps.number(x, PI);
    let below = steps.sub(half, rest);
    let is_below = steps.compare(BinaryOp::Lt, x, 0.0);
    let far = steps.select(is_below, below, above);
    let result = steps.select(parts.is_near, near, far);
    steps.name("acos", result)
}

/// What `asin` and `acos` are made of.
struct Parts {
    /// Whether the argument is at most one half.
    is_near: Expr,
    /// `x^2*P(x^2)`, where it is.
    tail: Expr,
    /// `asin(sqrt((1 - |x|)/2))`, where it is not.
    other: Expr,
}

impl Parts {
    fn of(steps: &mut Steps<'_>, x: Expr) -> Self {
        let size = steps.abs(x);
        let size = steps.name("size", size);
        let is_near = steps.compare(BinaryOp::Le, size, 0.5);
        let is_near = steps.name("is_near", is_near);
        let one = steps.number(x, 1.0);
        let half = steps.number(x, 0.5);
        let left = steps.sub(one, size);
        let left = steps.mul(left, half);
        let left = steps.name("left", left);
        let near = steps.mul(x, x);
        let square = steps.select(is_near, near, left);
        let square = steps.name("square", square);
        let tail = steps.polynomial(square, &ASIN);
        let tail = steps.mul(tail, square);
        let tail = steps.name("tail", tail);
        let root = steps.rw.intrinsic("sqrt", &[left]);
        let root = steps.name("root", root);
        let other = steps.fma(tail, root, root);
        Self { is_near, tail, other: steps.name("other", other) }
    }
}

/// The tangent's inverse of an f64, to about two units in the last place.
pub(super) fn atan(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let [near, far] = ATAN_BORDERS.map(|border| steps.compare(BinaryOp::Gt, size, border));
    let [is_past, is_far] = [steps.name("is_past", near), steps.name("is_far", far)];
    let (one, minus_one) = (steps.number(x, 1.0), steps.number(x, -1.0));
    let (less, more) = (steps.sub(size, one), steps.add(size, one));
    let above = steps.select(is_past, less, size);
    let above = steps.select(is_far, minus_one, above);
    let below = steps.select(is_past, more, one);
    let below = steps.select(is_far, size, below);
    let rest = steps.div(above, below);
    let rest = steps.name("rest", rest);
    let square = steps.mul(rest, rest);
    let square = steps.name("square", square);
    let tail = steps.polynomial(square, &ATAN);
    let tail = steps.mul(tail, square);
    let angle = steps.fma(tail, rest, rest);

    let mut start = |at_eighth: f64, at_quarter: f64| {
        let numbers = [0.0, at_eighth, at_quarter].map(|number| steps.number(x, number));
        let past = steps.select(is_past, numbers[1], numbers[0]);
        steps.select(is_far, numbers[2], past)
    };
    let low = start(FRAC_PI_2_LOW / 2.0, FRAC_PI_2_LOW);
    let high = start(FRAC_PI_4, FRAC_PI_2);
    let angle = steps.add(angle, low);
    let angle = steps.add(high, angle);
    let angle = steps.name("angle", angle);
    let result = steps.with_sign_of(angle, x);
    steps.name("atan", result)
}
