//! `pow`.
//!
//! Exponents that are known and small are products. Otherwise `pow(x, y) = exp(y * log(|x|))`, computed in
//! f64, as the product's error would be multiplied by the result's exponent. A negative base has a power
//! for whole exponents only, negative for odd ones; `pow(x, 0)` and `pow(1, y)` are 1 even of nan.

use tenon_plugin_api::prelude::*;

use super::{Steps, exponential, logarithm};

/// `x` to the power `y`; `None` when they are no floats.
pub(super) fn pow(steps: &mut Steps<'_>, x: Expr, y: Expr) -> Option<Expr> {
    let (dtype, _) = steps.rw.body().scalar_ty(x).filter(|(dtype, _)| dtype.is_float())?;
    let x = steps.name("x", x);
    if let View::Float(exponent) = steps.rw.view(y)
        && let Some(power) = known_power(steps, x, exponent)
    {
        return Some(power);
    }
    let x = steps.rw.cast(x, DType::F64);
    let x = steps.name("base", x);
    let y = steps.rw.cast(y, DType::F64);
    let y = steps.name("exponent", y);
    let result = general_power(steps, x, y);
    Some(steps.rw.cast(result, dtype))
}

fn known_power(steps: &mut Steps<'_>, x: Expr, exponent: f64) -> Option<Expr> {
    let one = steps.number(x, 1.0);
    Some(match exponent {
        0.0 => one,
        1.0 => x,
        2.0 => steps.mul(x, x),
        3.0 => {
            let square = steps.mul(x, x);
            steps.mul(square, x)
        }
        -1.0 => steps.div(one, x),
        _ => return None,
    })
}

fn general_power(steps: &mut Steps<'_>, x: Expr, y: Expr) -> Expr {
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let log = logarithm::log_f64(steps, size);
    let product = steps.mul(y, log);
    let product = steps.name("product", product);
    let power = exponential::exp_f64(steps, product);

    let floor = steps.rw.intrinsic("floor", &[y]);
    let is_whole = steps.rw.binary(BinaryOp::Eq, floor, y);
    let half = steps.number(y, 0.5);
    let half = steps.mul(y, half);
    let half = steps.name("half", half);
    let floor = steps.rw.intrinsic("floor", &[half]);
    let is_even = steps.rw.binary(BinaryOp::Eq, floor, half);
    let zero = steps.number(x, -0.0);
    let negative = steps.sub(zero, power);
    let signed = steps.select(is_even, power, negative);
    let nan = steps.number(x, f64::NAN);
    let below_zero = steps.select(is_whole, signed, nan);
    let is_negative = steps.compare(BinaryOp::Lt, x, 0.0);
    let result = steps.select(is_negative, below_zero, power);

    let one = steps.number(x, 1.0);
    let (is_one, is_zeroth) =
        (steps.compare(BinaryOp::Eq, x, 1.0), steps.compare(BinaryOp::Eq, y, 0.0));
    let result = steps.select(is_one, one, result);
    let result = steps.select(is_zeroth, one, result);
    steps.name("pow", result)
}
