//! `sin`, `cos` and `tan`.
//!
//! The angle is first a fraction of a turn: its mantissa, an integer, times those digits of `1/(2*pi)` that leave
//! neither whole turns nor less than the result can show, in integer arithmetic, which loses nothing (Payne and
//! Hanek 1983). So the largest float has as good a sine as one. The digits are chosen by the exponent, word by
//! word. What is left of half turns is an angle of at most a quarter turn, whose sine is Taylor's polynomial, in
//! f64; an odd number of half turns turns the sign. Angles below one half are taken as they are. Infinity and nan give
//! nan. The tangent is the quotient of both, whose angles come from one fraction.

use std::f64::consts::{FRAC_PI_2, TAU};

use tenon_plugin_api::prelude::*;

use super::Steps;

/// The digits of `1/(2*pi)`, of which an f32 reaches the first seven.
const INVERSE_TURN: [u32; 37] = [
    0x28be_60db,
    0x9391_054a,
    0x7f09_d5f4,
    0x7d4d_3770,
    0x36d8_a566,
    0x4f10_e410,
    0x7f94_58ea,
    0xf7ae_f158,
    0x6dc9_1b8e,
    0x9093_74b8,
    0x0192_4bba,
    0x8274_6487,
    0x3f87_7ac7,
    0x2c4a_69cf,
    0xba20_8d7d,
    0x4bae_d121,
    0x3a67_1c09,
    0xad17_df90,
    0x4e64_758e,
    0x60d4_ce7d,
    0x2721_17e2,
    0xef7e_4a0e,
    0xc7fe_25ff,
    0xf781_6603,
    0xfbcb_c462,
    0xd682_9b47,
    0xdb4d_9fb3,
    0xc9f2_c26d,
    0xd3d1_8fd9,
    0xa797_fa8b,
    0x5d49_eeb1,
    0xfaf9_7c5e,
    0xcf41_ce7d,
    0xe294_a4ba,
    0x9afe_d7ec,
    0x47e3_5742,
    0x1580_cc11,
];

/// Taylor's coefficients from `x^21` down to `x^3`.
const SIN: [f64; 10] = [
    1.0 / 51_090_942_171_709_440_000.0,
    -1.0 / 121_645_100_408_832_000.0,
    1.0 / 355_687_428_096_000.0,
    -1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    -1.0 / 5_040.0,
    1.0 / 120.0,
    -1.0 / 6.0,
];

/// What the reduction of a float needs to know of its format.
struct Format {
    dtype: DType,
    mantissa_bits: i64,
    /// The exponent field of a number whose mantissa counts units.
    exponent_bias: i64,
    /// Words of zeros in front of the digits, for angles that reach above the point.
    zeros: usize,
    /// Words of digits that the mantissa is multiplied with: those of the fraction, as many as the mantissa has,
    /// and for f64 one against rounding.
    digits: usize,
    /// The power of two above every number of a first word.
    first_words: usize,
    /// Terms of the polynomial.
    terms: usize,
}

const F32: Format = Format {
    dtype: DType::F32,
    mantissa_bits: 23,
    exponent_bias: 150,
    zeros: 1,
    digits: 3,
    first_words: 8,
    terms: 6,
};

const F64: Format = Format {
    dtype: DType::F64,
    mantissa_bits: 52,
    exponent_bias: 1075,
    zeros: 2,
    digits: 6,
    first_words: 64,
    terms: 10,
};

/// `sin(x)` of an f32 or an f64, to about one unit in the last place.
pub(super) fn sin(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let format = format_of(steps, x);
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let turns = Turns::of(steps, size, format);
    let sine = sine_of(steps, x, size, &turns, format);
    rounded(steps, x, sine, format)
}

/// `cos(x) = sin(|x| + pi/2)`, by the same precision.
pub(super) fn cos(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let format = format_of(steps, x);
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let turns = Turns::of(steps, size, format);
    let cosine = cosine_of(steps, size, turns, format);
    rounded(steps, x, cosine, format)
}

/// `tan(x) = sin(x) / cos(x)`, to about two units in the last place.
pub(super) fn tan(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let format = format_of(steps, x);
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let turns = Turns::of(steps, size, format);
    let sine = sine_of(steps, x, size, &turns, format);
    let cosine = cosine_of(steps, size, turns, format);
    let tangent = steps.div(sine, cosine);
    rounded(steps, x, tangent, format)
}

/// The sine in f64 of what is `turns` of a turn.
fn sine_of(steps: &mut Steps<'_>, x: Expr, size: Expr, turns: &Turns, format: &Format) -> Expr {
    let (angle, parity) = turns.half_turn(steps);
    let size = steps.rw.cast(size, DType::F64);
    let is_small = steps.compare(BinaryOp::Lt, size, 0.5);
    let is_small = steps.name("is_small", is_small);
    let angle = steps.select(is_small, size, angle);
    let none = steps.int(parity, 0);
    let parity = steps.select(is_small, none, parity);
    // The sign bit of an f32 is that of the f64 as well.
    let wide = steps.rw.cast(x, DType::F64);
    let bits = steps.bits(wide);
    let bits = steps.rw.cast(bits, DType::U64);
    let sign = steps.shift("shr", bits, 63);
    let parity = steps.rw.intrinsic("bitxor", &[parity, sign]);
    sine(steps, angle, parity, format)
}

/// The cosine in f64 of what is `turns` of a turn.
fn cosine_of(steps: &mut Steps<'_>, size: Expr, mut turns: Turns, format: &Format) -> Expr {
    let quarter = steps.int(turns.high, 1 << 62);
    turns.high = steps.add(turns.high, quarter);
    let (angle, parity) = turns.half_turn(steps);
    let size = steps.rw.cast(size, DType::F64);
    let is_small = steps.compare(BinaryOp::Lt, size, 0.5);
    let is_small = steps.name("is_small", is_small);
    // A half turn behind the sum of both.
    let quarter = steps.number(size, FRAC_PI_2);
    let below = steps.sub(size, quarter);
    let angle = steps.select(is_small, below, angle);
    let one = steps.int(parity, 1);
    let parity = steps.select(is_small, one, parity);
    sine(steps, angle, parity, format)
}

fn format_of(steps: &Steps<'_>, x: Expr) -> &'static Format {
    match steps.rw.body().scalar_ty(x) {
        Some((DType::F64, _)) => &F64,
        _ => &F32,
    }
}

/// A fraction of a turn, in units of `2^-64`, and for f64 another 64 bits.
struct Turns {
    high: Expr,
    low: Option<Expr>,
}

impl Turns {
    /// The part of a turn that `size`, which is not negative, is beyond whole ones.
    fn of(steps: &mut Steps<'_>, size: Expr, format: &Format) -> Turns {
        let bits = steps.bits(size);
        let bits = steps.rw.cast(bits, DType::U64);
        let bits = steps.name("bits", bits);
        let exponent = steps.shift("shr", bits, format.mantissa_bits);
        let start = steps.int(bits, format.exponent_bias - 32 * format.zeros as i64);
        let place = steps.sub(exponent, start);
        let place = steps.name("place", place);
        let mantissa = steps.masked(bits, (1 << format.mantissa_bits) - 1);
        let implied = steps.int(bits, 1 << format.mantissa_bits);
        let mantissa = steps.rw.intrinsic("bitor", &[mantissa, implied]);
        let mantissa = steps.name("mantissa", mantissa);

        let digits = digits_from(steps, place, format);
        let factor = match format.dtype {
            DType::F64 => {
                let (low, high) = (steps.low_word(mantissa), steps.shift("shr", mantissa, 32));
                vec![steps.name("low", low), steps.name("high", high)]
            }
            _ => vec![mantissa],
        };
        let product = low_product(steps, &digits, &factor);
        let top = product.len();
        let high = steps.join_words(product[top - 1], product[top - 2]);
        let high = steps.name("turns", high);
        let low = (top >= 4).then(|| steps.join_words(product[top - 3], product[top - 4]));
        Turns { high, low }
    }

    /// The angle to the nearest half turn, in f64, and whether its number is odd, as 0 or 1.
    fn half_turn(&self, steps: &mut Steps<'_>) -> (Expr, Expr) {
        let quarter = steps.int(self.high, 1 << 62);
        let moved = steps.add(self.high, quarter);
        let moved = steps.name("moved", moved);
        let parity = steps.shift("shr", moved, 63);
        let rest = steps.masked(moved, i64::MAX);
        let rest = steps.sub(rest, quarter);
        let rest = steps.rw.cast(rest, DType::I64);
        let rest = steps.rw.cast(rest, DType::F64);
        let unit = steps.number(rest, 2f64.powi(-64));
        let mut fraction = steps.mul(rest, unit);
        if let Some(low) = self.low {
            // One bit less is an i64, which processors convert.
            let low = steps.shift("shr", low, 1);
            let low = steps.rw.cast(low, DType::I64);
            let low = steps.rw.cast(low, DType::F64);
            fraction = steps.fma_by(low, 2f64.powi(-127), fraction);
        }
        let turn = steps.number(fraction, TAU);
        (steps.mul(fraction, turn), parity)
    }
}

/// The digits of `1/(2*pi)` from bit `place` on, in words of 32 bits, the least first.
fn digits_from(steps: &mut Steps<'_>, place: Expr, format: &Format) -> Vec<Expr> {
    let zeros = std::iter::repeat_n(0, format.zeros);
    let mut words: Vec<Expr> =
        zeros.chain(INVERSE_TURN).map(|word| steps.int(place, i64::from(word))).collect();
    let first = steps.shift("shr", place, 5);
    let first = steps.name("first", first);
    // From the largest step to the smallest, each halves what may still come.
    let mut step = format.first_words / 2;
    while step > 0 {
        let bit = steps.masked(first, step as i64);
        let none = steps.int(first, 0);
        let is_further = steps.rw.binary(BinaryOp::Ne, bit, none);
        let is_further = steps.name("is_further", is_further);
        let wanted = (format.digits + step).min(words.len());
        words = (0..wanted)
            .map(|at| match words.get(at + step) {
                Some(&further) => {
                    let word = steps.select(is_further, further, words[at]);
                    steps.name("word", word)
                }
                None => words[at],
            })
            .collect();
        step /= 2;
    }
    let within = steps.masked(place, 31);
    let whole = steps.int(place, 32);
    let back = steps.sub(whole, within);
    let back = steps.name("back", back);
    let shifted = words.windows(2).rev().map(|pair| {
        let pair = steps.join_words(pair[0], pair[1]);
        let word = steps.rw.intrinsic("shr", &[pair, back]);
        let word = steps.low_word(word);
        steps.name("digits", word)
    });
    shifted.collect()
}

/// The product of two numbers in words of 32 bits, the least first, as far as the first number goes.
fn low_product(steps: &mut Steps<'_>, a: &[Expr], b: &[Expr]) -> Vec<Expr> {
    let mut columns: Vec<Option<Expr>> = vec![None; a.len() + 1];
    let mut words = Vec::with_capacity(a.len());
    for at in 0..a.len() {
        for (i, &factor) in b.iter().enumerate().filter(|&(i, _)| i <= at) {
            let product = steps.mul(a[at - i], factor);
            let product = steps.name("product", product);
            let parts = [steps.low_word(product), steps.shift("shr", product, 32)];
            for (column, part) in columns[at..].iter_mut().zip(parts) {
                *column = Some(match *column {
                    Some(sum) => steps.add(sum, part),
                    None => part,
                });
            }
        }
        let sum = columns[at].expect("the first factor of `b` is in every column");
        let sum = steps.name("sum", sum);
        words.push(steps.low_word(sum));
        let carry = steps.shift("shr", sum, 32);
        columns[at + 1] = Some(match columns[at + 1] {
            Some(next) => steps.add(next, carry),
            None => carry,
        });
    }
    words
}

/// The sine in f64 of an angle of at most a quarter turn, negated for odd `parity`.
fn sine(steps: &mut Steps<'_>, angle: Expr, parity: Expr, format: &Format) -> Expr {
    let angle = steps.name("angle", angle);
    let square = steps.mul(angle, angle);
    let square = steps.name("square", square);
    let tail = steps.polynomial(square, &SIN[SIN.len() - format.terms..]);
    let tail = steps.mul(tail, square);
    let sine = steps.fma(tail, angle, angle);
    let bits = steps.bits(sine);
    let sign = steps.shift("shl", parity, 63);
    let sign = steps.rw.cast(sign, DType::I64);
    let turned = steps.rw.intrinsic("bitxor", &[bits, sign]);
    steps.float_of_bits(turned)
}

/// A result in the dtype of `x`, which is not finite where it is nan.
fn rounded(steps: &mut Steps<'_>, x: Expr, result: Expr, format: &Format) -> Expr {
    let result = steps.rw.cast(result, format.dtype);
    let size = steps.abs(x);
    let is_finite = steps.compare(BinaryOp::Lt, size, f64::INFINITY);
    let nan = steps.number(x, f64::NAN);
    let result = steps.select(is_finite, result, nan);
    steps.name("sine", result)
}
