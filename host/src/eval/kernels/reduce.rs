//! Reductions along axes.

use super::number::{Number, Sum};
use super::parallel::fill;
use super::shape::{permute, wrap_axis};
use super::{Result, with_number};
use crate::eval::Tensor;
use crate::ir::DType;
use crate::ops::{EvalCx, OpError};

/// The elements that become one stand in a row; `f` makes one of each row.
fn reduce<T: Number, U: Number>(
    cx: &EvalCx<'_>,
    axes: &[usize],
    f: &(dyn Fn(&[T]) -> U + Sync),
) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let tensor = cx.arg(0)?;
    let order: Vec<usize> = (0..tensor.shape().len())
        .filter(|axis| !axes.contains(axis))
        .chain(axes.iter().copied())
        .collect();
    let row: usize = axes.iter().map(|&axis| tensor.shape()[axis]).product();
    let count: usize = shape.iter().product();
    let moved = permute(tensor, &order)?;
    let elements = moved.elements::<T>();
    let mut out = vec![U::default(); count];
    let rows_at_once = (super::GRAIN / row.max(1)).max(1);
    fill(&mut out, rows_at_once, &|chunk, out| {
        for (number, out) in out.iter_mut().enumerate() {
            let start = (chunk * rows_at_once + number) * row;
            *out = f(&elements[start..start + row]);
        }
    });
    Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
}

/// The axes that are reduced, in ascending order.
fn axes(cx: &EvalCx<'_>) -> Result<Vec<usize>> {
    let rank = cx.arg(0)?.shape().len();
    if !cx.attrs.has("axis") {
        return Ok((0..rank).collect());
    }
    let mut axes: Vec<usize> =
        cx.attrs.ints("axis")?.iter().map(|&axis| wrap_axis(axis, rank)).collect();
    axes.sort_unstable();
    Ok(axes)
}

/// The sum of a row. Parts are summed on their own, which keeps the error small and uses vectors.
fn sum_row<T: Number>(row: &[T]) -> T::Sum {
    let mut parts = [T::Sum::default(); 8];
    let chunks = row.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (part, &x) in parts.iter_mut().zip(chunk) {
            *part = part.add(x.widen());
        }
    }
    let rest = rest.iter().fold(T::Sum::default(), |sum, &x| sum.add(x.widen()));
    parts.into_iter().fold(rest, T::Sum::add)
}

pub(crate) fn sum(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let axes = axes(cx)?;
    with_number!(cx.arg(0)?.dtype(), T => reduce(cx, &axes, &|row: &[T]| T::narrow(sum_row(row))))
}

pub(crate) fn mean(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let axes = axes(cx)?;
    super::with_float!(cx.arg(0)?.dtype(), T => {
        reduce(cx, &axes, &|row: &[T]| T::from_f64(sum_row(row) / row.len() as f64))
    })
}

pub(crate) fn prod(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let axes = axes(cx)?;
    with_number!(cx.arg(0)?.dtype(), T => reduce(cx, &axes, &|row: &[T]| {
        T::narrow(row.iter().fold(<T as Number>::Sum::ONE, |product, &x| Sum::mul(product, x.widen())))
    }))
}

pub(crate) fn max(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    extreme(cx, true)
}

pub(crate) fn min(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    extreme(cx, false)
}

fn extreme(cx: &EvalCx<'_>, is_max: bool) -> Result<Vec<Tensor>> {
    let axes = axes(cx)?;
    let shape = cx.arg(0)?.shape();
    if axes.iter().any(|&axis| shape[axis] == 0) {
        return Err(OpError::Value("there is no element to choose from".into()));
    }
    with_number!(cx.arg(0)?.dtype(), T => reduce(cx, &axes, &|row: &[T]| {
        let pick = if is_max { T::larger } else { T::smaller };
        row[1..].iter().fold(row[0], |best, &x| pick(best, x))
    }))
}

pub(crate) fn argmax(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    place(cx, true)
}

pub(crate) fn argmin(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    place(cx, false)
}

fn place(cx: &EvalCx<'_>, is_max: bool) -> Result<Vec<Tensor>> {
    let axis = wrap_axis(cx.attrs.int("axis")?, cx.arg(0)?.shape().len());
    with_number!(cx.arg(0)?.dtype(), T => reduce(cx, &[axis], &|row: &[T]| {
        // Of what is no number the first, as NumPy has it.
        let is_better = |x: T, y: T| {
            !y.is_nan() && (x.is_nan() || if is_max { x > y } else { x < y })
        };
        let best = (1..row.len()).fold(0, |best, i| if is_better(row[i], row[best]) { i } else { best });
        best as i64
    }))
}
