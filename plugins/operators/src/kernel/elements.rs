//! Each element by itself.

use tenon_plugin_api::op::number::Number;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::op::zeros;
use tenon_plugin_api::with_float;

use super::parallel::{GRAIN, fill};

/// Each element of the argument put through a function.
pub(crate) fn map<T: Element + Default>(
    cx: &EvalCx<'_>,
    f: impl Fn(T) -> T + Sync,
) -> Result<Vec<Tensor>> {
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

pub(crate) fn filled<U: Element + Default>(
    dtype: DType,
    shape: &[usize],
    f: &(dyn Fn(usize, &mut [U]) + Sync),
) -> Tensor {
    let mut out = zeros(shape.iter().product());
    fill(&mut out, GRAIN, &|chunk, out| f(chunk * GRAIN, out));
    Tensor::from_vec_as(dtype, shape.to_vec(), out)
}

/// Each element of the argument put through a function of f64, rounded once.
pub(crate) fn map_floats(cx: &EvalCx<'_>, f: &(dyn Fn(f64) -> f64 + Sync)) -> Result<Vec<Tensor>> {
    with_float!(cx.arg(0)?.dtype(), T => map(cx, |x: T| T::from_f64(f(x.to_f64()))))
}
