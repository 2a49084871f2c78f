//! Operators on each element by itself.

use super::number::Number;
use super::parallel::fill;
use super::{GRAIN, Result, with_float, with_number};
use crate::eval::{Element, Tensor};
use crate::ir::DType;
use crate::ops::EvalCx;

/// Each element of the argument put through a function.
fn map<T: Element + Default>(cx: &EvalCx<'_>, f: impl Fn(T) -> T + Sync) -> Result<Vec<Tensor>> {
    let elements = cx.arg(0)?.elements::<T>();
    produce(cx, &|first, out: &mut [T]| {
        out.iter_mut().zip(&elements[first..]).for_each(|(out, &x)| *out = f(x));
    })
}

/// A result whose elements are set by a function, which gets the number of the first of a piece.
fn produce<U: Element + Default>(
    cx: &EvalCx<'_>,
    f: &(dyn Fn(usize, &mut [U]) + Sync),
) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    Ok(vec![filled(dtype, shape, f)])
}

fn filled<U: Element + Default>(
    dtype: DType,
    shape: &[usize],
    f: &(dyn Fn(usize, &mut [U]) + Sync),
) -> Tensor {
    let mut out = vec![U::default(); shape.iter().product()];
    fill(&mut out, GRAIN, &|chunk, out| f(chunk * GRAIN, out));
    Tensor::from_vec_as(dtype, shape.to_vec(), out)
}

fn float(cx: &EvalCx<'_>, f: &(dyn Fn(f64) -> f64 + Sync)) -> Result<Vec<Tensor>> {
    with_float!(cx.arg(0)?.dtype(), T => map(cx, |x: T| T::from_f64(f(x.to_f64()))))
}

macro_rules! float_functions {
    ($($name:ident = $f:expr;)*) => {$(
        pub(crate) fn $name(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
            float(cx, &$f)
        }
    )*};
}

float_functions! {
    sigmoid = super::sigmoid;
    tanh = f64::tanh;
    exp = f64::exp;
    log = f64::ln;
    sqrt = f64::sqrt;
    rsqrt = |x| 1.0 / x.sqrt();
    erf = libm::erf;
    floor = f64::floor;
    ceil = f64::ceil;
    round = f64::round_ties_even;
    sin = libm::sin;
    cos = libm::cos;
    gelu = |x| 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    silu = |x| x * super::sigmoid(x);
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
    float(cx, &|x: f64| if x > 0.0 { x } else { alpha * x })
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
    let (to, _) = cx.out()?;
    Ok(vec![convert(cx.arg(0)?, to)?])
}

/// A tensor in another element type.
pub(super) fn convert(tensor: &Tensor, to: DType) -> Result<Tensor> {
    let from = tensor.dtype();
    if from == to {
        return Ok(tensor.clone());
    }
    // Over f64 from floats, over i64 from integers, so that types are not taken in pairs.
    let is_float = from.is_float() || (from == DType::U64 && to.is_float());
    let (mut floats, mut ints): (Option<Reader<'_, f64>>, Option<Reader<'_, i64>>) = (None, None);
    with_number!(from, T => {
        let elements = tensor.elements::<T>();
        match is_float {
            true => floats = Some(Box::new(move |first, to| read(&elements[first..], to, T::to_f64))),
            false => ints = Some(Box::new(move |first, to| read(&elements[first..], to, T::to_i64))),
        }
        Ok(())
    })?;
    with_number!(to, U => Ok(filled(to, tensor.shape(), &|first, out: &mut [U]| {
        let one = U::from_i64(1);
        for (number, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = first + number * BLOCK;
            match (&floats, &ints) {
                (Some(read), _) => {
                    let mut block = [0.0; BLOCK];
                    read(first, &mut block[..out.len()]);
                    for (out, x) in out.iter_mut().zip(block) {
                        *out = match to.is_bool() {
                            true => if x != 0.0 { one } else { U::default() },
                            false => U::from_f64(x),
                        };
                    }
                }
                (None, Some(read)) => {
                    let mut block = [0; BLOCK];
                    read(first, &mut block[..out.len()]);
                    for (out, x) in out.iter_mut().zip(block) {
                        *out = U::from_i64(if to.is_bool() { (x != 0) as i64 } else { x });
                    }
                }
                (None, None) => {}
            }
        }
    })))
}

/// Elements that are converted at once.
const BLOCK: usize = 256;

/// Reads elements from a number on.
type Reader<'a, X> = Box<dyn Fn(usize, &mut [X]) + Sync + 'a>;

fn read<T: Number, X>(from: &[T], to: &mut [X], convert: impl Fn(T) -> X) {
    to.iter_mut().zip(from).for_each(|(to, &x)| *to = convert(x));
}
