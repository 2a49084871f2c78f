//! `log`.
//!
//! `log(x) = e*ln 2 + log(m)` with `x = 2^e * m` and `m` between `sqrt(1/2)` and `sqrt(2)`. Both are cut out
//! of the bits: adding the distance from `sqrt(1/2)` to 1 before the exponent is taken moves the border
//! between two exponents there. Numbers below the normal range are first scaled up. The logarithm of zero
//! is minus infinity, of a negative number nan; infinity and nan stay.
//!
//! For f32 the polynomial in `m - 1`, and `ln 2` in two parts, are those of Cephes' `logf` (Moshier). For
//! f64 it is the series of the area tangent: `log(m) = 2*(s + s^3/3 + s^5/5 + …)`, `s = (m - 1)/(m + 1)`.

use tenon_plugin_api::prelude::*;

use super::Steps;

const LOG_F32: [f64; 9] = [
    7.037_683_629_2e-2,
    -1.151_461_031e-1,
    1.167_699_874e-1,
    -1.242_014_084_6e-1,
    1.424_932_278_7e-1,
    -1.666_805_766_5e-1,
    2.000_071_476_5e-1,
    -2.499_999_399_3e-1,
    3.333_333_117_4e-1,
];

/// `2/(2k + 1)` from `k = 12` down to 1.
const LOG_F64: [f64; 12] = [
    2.0 / 25.0,
    2.0 / 23.0,
    2.0 / 21.0,
    2.0 / 19.0,
    2.0 / 17.0,
    2.0 / 15.0,
    2.0 / 13.0,
    2.0 / 11.0,
    2.0 / 9.0,
    2.0 / 7.0,
    2.0 / 5.0,
    2.0 / 3.0,
];

/// What the split of a float needs to know of its format.
struct Format {
    least_normal: f64,
    /// A power of two that makes every number normal.
    scale: f64,
    scale_exponent: f64,
    mantissa_bits: i64,
    exponent_bias: i64,
    one_bits: i64,
    root_half_bits: i64,
}

const F32: Format = Format {
    least_normal: f32::MIN_POSITIVE as f64,
    scale: 8_388_608.0,
    scale_exponent: 23.0,
    mantissa_bits: 23,
    exponent_bias: 127,
    one_bits: 0x3f80_0000,
    root_half_bits: 0x3f35_04f3,
};

const F64: Format = Format {
    least_normal: f64::MIN_POSITIVE,
    scale: 4_503_599_627_370_496.0,
    scale_exponent: 52.0,
    mantissa_bits: 52,
    exponent_bias: 1023,
    one_bits: 0x3ff0_0000_0000_0000,
    root_half_bits: 0x3fe6_a09e_667f_3bcd,
};

/// `log(x)` of an f32 or an f64, to about one unit in the last place.
pub(super) fn log(steps: &mut Steps<'_>, x: Expr) -> Expr {
    match steps.is_f64(x) {
        true => log_f64(steps, x),
        false => log_f32(steps, x),
    }
}

fn log_f32(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let (e, m) = split(steps, x, &F32);
    let one = steps.number(m, 1.0);
    let f = steps.sub(m, one);
    let f = steps.name("f", f);
    let square = steps.mul(f, f);
    let square = steps.name("square", square);
    let tail = steps.polynomial(f, &LOG_F32);
    let cube = steps.mul(square, f);
    let low = steps.number(e, -2.121_944_4e-4);
    let low = steps.mul(e, low);
    let sum = steps.fma(tail, cube, low);
    let sum = steps.fma_by(square, -0.5, sum);
    let sum = steps.add(f, sum);
    let result = steps.fma_by(e, 0.693_359_375, sum);
    at_the_borders(steps, x, result)
}

fn log_f64(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let (e, m) = split(steps, x, &F64);
    let one = steps.number(m, 1.0);
    let (above, below) = (steps.sub(m, one), steps.add(m, one));
    let s = steps.div(above, below);
    let s = steps.name("s", s);
    let square = steps.mul(s, s);
    let square = steps.name("square", square);
    let tail = steps.polynomial(square, &LOG_F64);
    let cube = steps.mul(square, s);
    let two_s = steps.add(s, s);
    let low = steps.fma_by(e, 1.908_214_929_270_587_7e-10, two_s);
    let sum = steps.fma(tail, cube, low);
    let result = steps.fma_by(e, 0.693_147_180_369_123_8, sum);
    at_the_borders(steps, x, result)
}

/// `log(x)` of a positive f64 as a sum of two: the second has what the last place of the first does not show. The
/// terms of the series are as exact as they are large.
pub(super) fn log_as_sum(steps: &mut Steps<'_>, x: Expr) -> (Expr, Expr) {
    let (e, m) = split(steps, x, &F64);
    let one = steps.number(m, 1.0);
    let above = steps.sub(m, one);
    let above = steps.name("above", above);
    let (below, below_low) = steps.exact_sum(one, m);
    let s = steps.div(above, below);
    let s = steps.name("s", s);
    let (product, missing) = steps.exact_product(s, below);
    let rest = steps.sub(above, product);
    let rest = steps.sub(rest, missing);
    let lost = steps.mul(s, below_low);
    let rest = steps.sub(rest, lost);
    let s_low = steps.div(rest, below);
    let s_low = steps.name("s_low", s_low);

    // s^3 * 2/3, exact to twice the digits as far as its size lets them show.
    let (square, square_low) = steps.exact_product(s, s);
    let twice = steps.add(s, s);
    let square_low = steps.fma(twice, s_low, square_low);
    let square_low = steps.name("square_low", square_low);
    let (cube, cube_low) = steps.exact_product(square, s);
    let cube_low = steps.fma(square, s_low, cube_low);
    let cube_low = steps.fma(square_low, s, cube_low);
    let cube_low = steps.name("cube_low", cube_low);
    let [third, third_low] = TWO_THIRDS.map(|part| steps.number(s, part));
    let (term, term_low) = steps.exact_product(cube, third);
    let term_low = steps.fma(cube, third_low, term_low);
    let term_low = steps.fma(cube_low, third, term_low);
    let (rest, _) = LOG_F64.split_at(LOG_F64.len() - 1);
    let tail = steps.polynomial(square, rest);
    let fifth = steps.mul(square, cube);
    let low = steps.fma(tail, fifth, term_low);
    let low = steps.fma_by(s_low, 2.0, low);

    let [ln2, ln2_low] = LN2.map(|part| steps.number(e, part));
    let whole = steps.mul(e, ln2);
    let whole = steps.name("whole", whole);
    let low = steps.fma(e, ln2_low, low);
    let low = steps.name("low", low);
    let (head, head_low) = steps.exact_sum(twice, term);
    // The multiple of ln 2 is larger than the logarithm of a mantissa, or it is zero.
    let (total, total_low) = steps.exact_sum(whole, head);
    let low = steps.add(low, head_low);
    let low = steps.add(low, total_low);
    let total = at_the_borders(steps, x, total);
    (total, steps.name("log_low", low))
}

/// `2/3` in two parts.
const TWO_THIRDS: [f64; 2] = [2.0 / 3.0, 3.700_743_415_417_188e-17];
/// `ln 2` in two parts, of which the first has so few bits that multiples by an exponent are exact.
const LN2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];

/// Exponent, as a float, and mantissa of a positive number.
fn split(steps: &mut Steps<'_>, x: Expr, format: &Format) -> (Expr, Expr) {
    let is_small = steps.compare(BinaryOp::Lt, x, format.least_normal);
    let is_small = steps.name("is_small", is_small);
    let scale = steps.number(x, format.scale);
    let scaled = steps.mul(x, scale);
    let normal = steps.select(is_small, scaled, x);
    let bits = steps.bits(normal);
    let distance = steps.int(bits, format.one_bits - format.root_half_bits);
    let moved = steps.add(bits, distance);
    let moved = steps.name("moved", moved);

    let exponent = steps.shift("shr", moved, format.mantissa_bits);
    let bias = steps.int(moved, format.exponent_bias);
    let exponent = steps.sub(exponent, bias);
    let dtype = steps.rw.body().scalar_ty(x).map_or(DType::F32, |(dtype, _)| dtype);
    let exponent = steps.rw.cast(exponent, dtype);
    let (shift, zero) = (steps.number(x, format.scale_exponent), steps.number(x, 0.0));
    let shift = steps.select(is_small, shift, zero);
    let exponent = steps.sub(exponent, shift);
    let exponent = steps.name("e", exponent);

    let mask = steps.int(moved, (1 << format.mantissa_bits) - 1);
    let fraction = steps.rw.intrinsic("bitand", &[moved, mask]);
    let start = steps.int(moved, format.root_half_bits);
    let mantissa = steps.add(fraction, start);
    let mantissa = steps.float_of_bits(mantissa);
    let mantissa = steps.name("m", mantissa);
    (exponent, mantissa)
}

/// `result` for positive finite `x`, and what the logarithm is elsewhere.
fn at_the_borders(steps: &mut Steps<'_>, x: Expr, result: Expr) -> Expr {
    let is_finite = steps.compare(BinaryOp::Lt, x, f64::INFINITY);
    let inside = steps.select(is_finite, result, x);
    let is_zero = steps.compare(BinaryOp::Eq, x, 0.0);
    let pole = steps.number(x, f64::NEG_INFINITY);
    let inside = steps.select(is_zero, pole, inside);
    let is_negative = steps.compare(BinaryOp::Lt, x, 0.0);
    let nan = steps.number(x, f64::NAN);
    let result = steps.select(is_negative, nan, inside);
    steps.name("log", result)
}
