//! `exp` and `scaleb`.
//!
//! `exp(x) = 2^n * exp(r)` with `n` the integer nearest to `x / ln 2`, so `|r| <= ln 2 / 2`. `n` is found
//! by adding a number so large that the sum has no room for a fraction; its low bits then are `n`. The
//! power of two is made in two halves, so that results below the normal range round once, those beyond
//! the range become infinite, and neither half leaves the range. AVX-512 has an instruction for it.
//!
//! For f32 the polynomial, and `ln 2` in two parts of which the first leaves no rounding error, are those of
//! Cephes' `expf` (Moshier). For f64 it is Taylor's.

use tenon_plugin_api::prelude::*;

use super::Steps;

const EXP_F32: [f64; 6] = [
    1.987_569_15e-4,
    1.398_199_950_7e-3,
    8.333_451_907_3e-3,
    4.166_579_589_4e-2,
    1.666_666_545_9e-1,
    5.000_000_120_1e-1,
];

/// `1/k!` from `k = 13` down to 2.
const EXP_F64: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    1.0 / 2.0,
];

/// What the reduction of a float needs to know of its format.
struct Format {
    /// Three halves of two to the number of mantissa bits.
    magic: f64,
    /// `ln 2` in two parts.
    ln2: [f64; 2],
    mantissa_bits: i64,
    exponent_bias: i64,
    /// Beyond these the result is zero and infinite.
    range: [f64; 2],
}

const F32: Format = Format {
    magic: 12_582_912.0,
    ln2: [0.693_359_375, -2.121_944_4e-4],
    mantissa_bits: 23,
    exponent_bias: 127,
    range: [-104.0, 89.0],
};

const F64: Format = Format {
    magic: 6_755_399_441_055_744.0,
    ln2: [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10],
    mantissa_bits: 52,
    exponent_bias: 1023,
    range: [-746.0, 710.0],
};

/// `exp(x)` of an f32 or an f64, to about one unit in the last place.
pub(super) fn exp(steps: &mut Steps<'_>, x: Expr) -> Expr {
    match steps.is_f64(x) {
        true => reduce_and_scale(steps, x, None, &F64, &EXP_F64),
        false => reduce_and_scale(steps, x, None, &F32, &EXP_F32),
    }
}

/// `exp(x + low)` of an f64 and what its last place does not show, which is finite.
pub(super) fn exp_of_sum(steps: &mut Steps<'_>, x: Expr, low: Expr) -> Expr {
    reduce_and_scale(steps, x, Some(low), &F64, &EXP_F64)
}

/// `exp(x) - 1` of an f32 or an f64 that is not above zero, to about one unit in the last place: `2^n * (exp(r) - 1) + (2^n - 1)`.
pub(super) fn exp_less_one(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let (format, tail) = if steps.is_f64(x) { (&F64, &EXP_F64[..]) } else { (&F32, &EXP_F32[..]) };
    // What is below is -1; all powers of two are normal.
    let is_low = steps.compare(BinaryOp::Lt, x, -44.0);
    let least = steps.number(x, -44.0);
    let x = steps.select(is_low, least, x);
    let x = steps.name("x", x);
    let Reduced { count, r, tail, square, .. } = reduced(steps, x, None, format, tail);
    let rest = steps.fma(tail, square, r);
    let bits = steps.bits(count);
    let power = power_of_two(steps, bits, format);
    let power = steps.name("power", power);
    let one = steps.number(r, 1.0);
    let whole = steps.sub(power, one);
    let result = steps.fma(rest, power, whole);
    steps.name("exp_less_one", result)
}

/// `x` as `n ln 2 + r`: `exp(x)` is `2^n * (1 + r + tail * square)`.
struct Reduced {
    n: Expr,
    /// The float whose low bits are `n`.
    count: Expr,
    r: Expr,
    square: Expr,
    tail: Expr,
}

fn reduced(
    steps: &mut Steps<'_>,
    x: Expr,
    low: Option<Expr>,
    format: &Format,
    tail: &[f64],
) -> Reduced {
    let magic = steps.number(x, format.magic);
    let count = steps.fma_by(x, std::f64::consts::LOG2_E, magic);
    let count = steps.name("n_bits", count);
    let n = steps.sub(count, magic);
    let n = steps.name("n", n);

    let r = steps.fma_by(n, -format.ln2[0], x);
    let mut r = steps.fma_by(n, -format.ln2[1], r);
    if let Some(low) = low {
        r = steps.add(r, low);
    }
    let r = steps.name("r", r);
    let square = steps.mul(r, r);
    let tail = steps.polynomial(r, tail);
    Reduced { n, count, r, square, tail }
}

fn reduce_and_scale(
    steps: &mut Steps<'_>,
    x: Expr,
    low: Option<Expr>,
    format: &Format,
    tail: &[f64],
) -> Expr {
    let [least, greatest] = format.range;
    let clamped = steps.clamp(x, least, greatest);
    let x = steps.name("x", clamped);
    let Reduced { n, count, r, square, tail } = reduced(steps, x, low, format, tail);
    let one = steps.number(r, 1.0);
    let head = steps.add(r, one);
    let power = steps.fma(tail, square, head);
    if steps.has_scaling {
        let result = steps.rw.intrinsic("scaleb", &[power, n]);
        return steps.name("exp", result);
    }

    // The low bits of these sums are n and its half; the rest is shifted out.
    let magic = steps.number(x, format.magic);
    let half = steps.fma_by(n, 0.5, magic);
    let half = steps.bits(half);
    let half = steps.name("half", half);
    let whole = steps.bits(count);
    let other = steps.sub(whole, half);
    let first = power_of_two(steps, half, format);
    let second = power_of_two(steps, other, format);
    let scaled = steps.mul(power, first);
    let result = steps.mul(scaled, second);
    steps.name("exp", result)
}

/// The float `2^n`, for an integer that has `n` in its low bits.
fn power_of_two(steps: &mut Steps<'_>, n: Expr, format: &Format) -> Expr {
    let bias = steps.int(n, format.exponent_bias);
    let biased = steps.add(n, bias);
    let exponent = steps.shift("shl", biased, format.mantissa_bits);
    steps.float_of_bits(exponent)
}

/// `x * 2^n` for an `n` that is rounded down, of f32 or f64: in three steps, of which one that goes down keeps room for all bits, so
/// that what ends below the normal range is rounded once.
pub(super) fn scaleb(steps: &mut Steps<'_>, x: Expr, n: Expr) -> Expr {
    let format = if steps.is_f64(x) { &F64 } else { &F32 };
    let magic = steps.number(x, format.magic);
    let whole = steps.rw.intrinsic("floor", &[n]);
    let (lowest, highest) = (format.mantissa_bits + 2 - format.exponent_bias, format.exponent_bias);
    let mut left = steps.clamp(whole, 3.0 * lowest as f64, 3.0 * highest as f64);
    let mut scaled = x;
    for _ in 0..3 {
        left = steps.name("left", left);
        let step = steps.clamp(left, lowest as f64, highest as f64);
        let step = steps.name("step", step);
        let bits = steps.add(step, magic);
        let bits = steps.bits(bits);
        let power = power_of_two(steps, bits, format);
        scaled = steps.mul(scaled, power);
        left = steps.sub(left, step);
    }
    steps.name("scaled", scaled)
}
