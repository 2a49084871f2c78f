//! `pow`.
//!
//! Exponents that are known and small are products. Otherwise `pow(x, y) = exp(y * log(|x|))`, computed in
//! f64, as the product's error would be multiplied by the result's exponent; of f64 the logarithm and the product have
//! twice the digits. The rest is as C has it: a negative base has a power for whole exponents only, negative for odd
//! ones, but at zero and infinity for all; `pow(x, 0)` and `pow(1, y)` are 1 even of nan.
//!
//! Powers of integers are exact, modulo the size of the type: products of squares, chosen by the exponent's bits. A
//! negative exponent gives what truncation leaves of the quotient: 1 for 1, 1 or -1 for -1, 0 for all others, zero
//! as well.

use tenon_plugin_api::prelude::*;

use super::{Steps, exponential, logarithm};

/// `x` to the power `y`; `None` of truth values.
pub(super) fn pow(steps: &mut Steps<'_>, x: Expr, y: Expr) -> Option<Expr> {
    let (dtype, _) = steps.rw.body().scalar_ty(x).filter(|(dtype, _)| !dtype.is_bool())?;
    let x = steps.name("x", x);
    let known = match steps.rw.view(y) {
        View::Float(exponent) => Some(exponent),
        View::Int(exponent) => Some(exponent as f64),
        _ => None,
    };
    if let Some(power) = known.and_then(|exponent| known_power(steps, x, exponent)) {
        return Some(power);
    }
    if !dtype.is_float() {
        let y = steps.name("exponent", y);
        return Some(integer_power(steps, x, y, dtype));
    }
    let base = steps.rw.cast(x, DType::F64);
    let base = steps.name("base", base);
    let y = steps.rw.cast(y, DType::F64);
    let y = steps.name("exponent", y);
    let result = general_power(steps, base, y, dtype == DType::F64);
    Some(steps.rw.cast(result, dtype))
}

fn known_power(steps: &mut Steps<'_>, x: Expr, exponent: f64) -> Option<Expr> {
    let is_float = steps.rw.body().scalar_ty(x).is_some_and(|(dtype, _)| dtype.is_float());
    Some(match exponent {
        0.0 => steps.number(x, 1.0),
        1.0 => x,
        2.0 => steps.mul(x, x),
        3.0 => {
            let square = steps.mul(x, x);
            steps.mul(square, x)
        }
        -1.0 if is_float => {
            let one = steps.number(x, 1.0);
            steps.div(one, x)
        }
        _ => return None,
    })
}

fn integer_power(steps: &mut Steps<'_>, x: Expr, y: Expr, dtype: DType) -> Expr {
    let (one, zero) = (steps.int(x, 1), steps.int(x, 0));
    let is_odd = |steps: &mut Steps<'_>, rest| {
        let bit = steps.masked(rest, 1);
        steps.rw.binary(BinaryOp::Ne, bit, zero)
    };
    let bits = i64::from(dtype.bits()) - i64::from(dtype.is_signed());
    let (mut square, mut result) = (x, one);
    for bit in 0..bits {
        if bit > 0 {
            let next = steps.mul(square, square);
            square = steps.name("square", next);
        }
        let rest = steps.shift("shr", y, bit);
        let is_set = is_odd(steps, rest);
        let factor = steps.select(is_set, square, one);
        let product = if bit > 0 { steps.mul(result, factor) } else { factor };
        result = steps.name("power", product);
    }
    if !dtype.is_signed() {
        return result;
    }
    let minus_one = steps.int(x, -1);
    let is_set = is_odd(steps, y);
    let turned = steps.select(is_set, minus_one, one);
    let is_minus_one = steps.rw.binary(BinaryOp::Eq, x, minus_one);
    let is_one = steps.rw.binary(BinaryOp::Eq, x, one);
    let inverse = steps.select(is_one, one, zero);
    let inverse = steps.select(is_minus_one, turned, inverse);
    let is_negative = steps.rw.binary(BinaryOp::Lt, y, zero);
    let result = steps.select(is_negative, inverse, result);
    steps.name("power", result)
}

/// The power of two f64; with `is_exact` to the last place of an f64.
fn general_power(steps: &mut Steps<'_>, x: Expr, y: Expr, is_exact: bool) -> Expr {
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let power = match is_exact {
        true => exact_size(steps, size, y),
        false => {
            let log = logarithm::log(steps, size);
            let product = steps.mul(y, log);
            let product = steps.name("product", product);
            exponential::exp(steps, product)
        }
    };
    // Any power of one, where an infinite exponent makes no number of its logarithm.
    let one = steps.number(x, 1.0);
    let is_one = steps.compare(BinaryOp::Eq, size, 1.0);
    let power = steps.select(is_one, one, power);

    let floor = steps.rw.intrinsic("floor", &[y]);
    let is_whole = steps.rw.binary(BinaryOp::Eq, floor, y);
    let is_whole = steps.name("is_whole", is_whole);
    let half = steps.number(y, 0.5);
    let half = steps.mul(y, half);
    let half = steps.name("half", half);
    let floor = steps.rw.intrinsic("floor", &[half]);
    let has_half = steps.rw.binary(BinaryOp::Ne, floor, half);
    let is_odd = steps.rw.binary(BinaryOp::And, is_whole, has_half);
    // The sign bit, which a zero has as well.
    let bits = steps.bits(x);
    let zero = steps.int(bits, 0);
    let is_negative = steps.rw.binary(BinaryOp::Lt, bits, zero);
    let is_turned = steps.rw.binary(BinaryOp::And, is_odd, is_negative);
    let zero = steps.number(x, -0.0);
    let negative = steps.sub(zero, power);
    let signed = steps.select(is_turned, negative, power);

    let is_below = steps.compare(BinaryOp::Lt, x, 0.0);
    let is_finite = steps.compare(BinaryOp::Lt, size, f64::INFINITY);
    let is_proper = steps.rw.binary(BinaryOp::And, is_below, is_finite);
    let nan = steps.number(x, f64::NAN);
    let below_zero = steps.select(is_whole, signed, nan);
    let result = steps.select(is_proper, below_zero, signed);

    let is_one = steps.compare(BinaryOp::Eq, x, 1.0);
    let is_zeroth = steps.compare(BinaryOp::Eq, y, 0.0);
    let is_certain = steps.rw.binary(BinaryOp::Or, is_one, is_zeroth);
    let result = steps.select(is_certain, one, result);
    steps.name("pow", result)
}

/// `size` to the power `y`, with twice the digits on the way.
fn exact_size(steps: &mut Steps<'_>, size: Expr, y: Expr) -> Expr {
    let (log, log_low) = logarithm::log_as_sum(steps, size);
    let (product, missing) = steps.exact_product(y, log);
    let low = steps.fma(y, log_low, missing);
    // Beyond this the result is zero, infinite or no number, and so may be what is missing.
    let distance = steps.abs(product);
    let is_inside = steps.compare(BinaryOp::Lt, distance, 1024.0);
    let none = steps.number(product, 0.0);
    let low = steps.select(is_inside, low, none);
    exponential::exp_of_sum(steps, product, low)
}
