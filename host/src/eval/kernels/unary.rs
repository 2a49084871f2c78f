//! Operators on each element by itself.

use rayon::prelude::*;

use super::number::Number;
use super::{GRAIN, Result, with_float, with_number};
use crate::eval::{Element, Tensor};
use crate::ir::DType;
use crate::ops::EvalCx;

/// Each element of the argument put through a function.
fn map<T: Element, U: Element>(cx: &EvalCx<'_>, f: impl Fn(T) -> U + Sync) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let elements = cx.arg(0)?.elements::<T>();
    let mapped: Vec<U> = elements.par_iter().with_min_len(GRAIN).map(|&x| f(x)).collect();
    Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), mapped)])
}

fn float(cx: &EvalCx<'_>, f: impl Fn(f64) -> f64 + Sync) -> Result<Vec<Tensor>> {
    with_float!(cx.arg(0)?.dtype(), T => map(cx, |x: T| T::from_f64(f(x.to_f64()))))
}

macro_rules! float_functions {
    ($($name:ident = $f:expr;)*) => {$(
        pub(crate) fn $name(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
            float(cx, $f)
        }
    )*};
}

float_functions! {
    sigmoid = |x| 1.0 / (1.0 + (-x).exp());
    tanh = f64::tanh;
    exp = f64::exp;
    log = f64::ln;
    sqrt = f64::sqrt;
    rsqrt = |x| 1.0 / x.sqrt();
    erf = super::erf;
    floor = f64::floor;
    ceil = f64::ceil;
    round = f64::round_ties_even;
    sin = f64::sin;
    cos = f64::cos;
    gelu = |x| 0.5 * x * (1.0 + super::erf(x * std::f64::consts::FRAC_1_SQRT_2));
    silu = |x| x / (1.0 + (-x).exp());
}

pub(crate) fn relu(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    with_number!(cx.arg(0)?.dtype(), T => map(cx, |x: T| x.larger(T::default())))
}

pub(crate) fn negative(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    with_number!(cx.arg(0)?.dtype(), T => map(cx, |x: T| x.neg()))
}

pub(crate) fn abs(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    with_number!(cx.arg(0)?.dtype(), T => map(cx, <T as Number>::abs))
}

pub(crate) fn leaky_relu(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let alpha = cx.attrs.float("alpha")?;
    float(cx, |x| if x > 0.0 { x } else { alpha * x })
}

pub(crate) fn clip(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (min, max) = (cx.attrs.float("min")?, cx.attrs.float("max")?);
    with_number!(cx.arg(0)?.dtype(), T => {
        // A bound that the type cannot hold saturates, which bounds nothing.
        let (min, max) = (T::from_f64(min), T::from_f64(max));
        map(cx, |x: T| x.larger(min).smaller(max))
    })
}

pub(crate) fn logical_not(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    map(cx, |x: u8| (x == 0) as u8)
}

/// The argument itself.
pub(crate) fn identity(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    Ok(vec![cx.arg(0)?.clone()])
}

pub(crate) fn cast(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let from = cx.arg(0)?.dtype();
    let (to, _) = cx.out()?;
    if from == to {
        return identity(cx);
    }
    with_number!(from, T => match to {
        DType::BOOL => map(cx, |x: T| (x != T::default()) as u8),
        to => with_number!(to, U => map(cx, convert::<T, U>)),
    })
}

fn convert<T: Number, U: Number>(x: T) -> U {
    match T::IS_FLOAT {
        true => U::from_f64(x.to_f64()),
        // An i64 above 2^53 would lose bits on the way over f64.
        false => U::from_i64(x.to_i64()),
    }
}
