//! Reductions along axes: their types, and the rows of elements of which each becomes one.

use tenon_plugin_api::op::number::Sum;
use tenon_plugin_api::op::prelude::*;

use crate::kernel::moves::{permute, wrap_axis};
use crate::kernel::parallel::{GRAIN, fill};

/// The type of a reduction along axes, all where none are given.
pub(crate) fn reduced(cx: &InferCx<'_>, axes: Option<&[i64]>, keepdims: bool) -> Result<Type> {
    let tensor = cx.tensor(0)?;
    if tensor.dtype.is_bool() {
        let found = tensor.dtype;
        return Err(OpError::WrongDType { index: 0, expected: "a number".into(), found });
    }
    let Some(dims) = tensor.dims else { return Ok(cx.tensor_type(tensor.dtype, None)) };
    let axes = match axes {
        Some(axes) => cx.axes("axis", axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    Ok(without(cx, tensor.dtype, dims, &axes, keepdims))
}

/// The type of the places of elements along an axis.
pub(crate) fn placed(cx: &InferCx<'_>, axis: i64, keepdims: bool) -> Result<Type> {
    let Some(dims) = cx.tensor(0)?.dims else { return Ok(cx.tensor_type(DType::I64, None)) };
    let axis = cx.axis("axis", axis, dims.len())?;
    if cx.value(dims[axis]) == Some(0) {
        return cx.bad_attr("axis", axis, "there is no element along it");
    }
    Ok(without(cx, DType::I64, dims, &[axis], keepdims))
}

/// The type without axes, or with these of extent 1.
fn without(cx: &InferCx<'_>, dtype: DType, dims: &[Dim], axes: &[usize], keepdims: bool) -> Type {
    let kept = |(axis, &dim): (usize, &Dim)| match axes.contains(&axis) {
        true => keepdims.then(|| cx.dim(1)),
        false => Some(dim),
    };
    let dims: Vec<Dim> = dims.iter().enumerate().filter_map(kept).collect();
    cx.tensor_type(dtype, Some(&dims))
}

/// The elements that become one stand in a row; `f` makes one of each row.
pub(crate) fn rows<T: Number, U: Number>(
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
    let rows_at_once = (GRAIN / row.max(1)).max(1);
    fill(&mut out, rows_at_once, &|chunk, out| {
        for (number, out) in out.iter_mut().enumerate() {
            let start = (chunk * rows_at_once + number) * row;
            *out = f(&elements[start..start + row]);
        }
    });
    Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
}

/// The axes that are reduced, in ascending order; all where none are given.
pub(crate) fn axes(cx: &EvalCx<'_>, given: Option<&[i64]>) -> Result<Vec<usize>> {
    let rank = cx.arg(0)?.shape().len();
    let Some(given) = given else { return Ok((0..rank).collect()) };
    let mut axes: Vec<usize> = given.iter().map(|&axis| wrap_axis(axis, rank)).collect();
    axes.sort_unstable();
    Ok(axes)
}

/// The sum of a row. Parts are summed on their own, which keeps the error small and uses vectors.
pub(crate) fn sum_row<T: Number>(row: &[T]) -> T::Sum {
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

/// The element of each row that is picked before all others.
pub(crate) fn extreme<T: Number>(
    cx: &EvalCx<'_>,
    axes: &[usize],
    pick: fn(T, T) -> T,
) -> Result<Vec<Tensor>> {
    let shape = cx.arg(0)?.shape();
    if axes.iter().any(|&axis| shape[axis] == 0) {
        return Err(OpError::Value("there is no element to choose from".into()));
    }
    rows(cx, axes, &|row: &[T]| row[1..].iter().fold(row[0], |best, &x| pick(best, x)))
}

/// The place in each row along an axis of the element that is better than all others.
pub(crate) fn place<T: Number>(
    cx: &EvalCx<'_>,
    axis: i64,
    is_better: fn(T, T) -> bool,
) -> Result<Vec<Tensor>> {
    let axis = wrap_axis(axis, cx.arg(0)?.shape().len());
    rows(cx, &[axis], &|row: &[T]| {
        let wins = |x: T, y: T| !y.is_nan() && (x.is_nan() || is_better(x, y));
        (1..row.len()).fold(0, |best, i| if wins(row[i], row[best]) { i } else { best }) as i64
    })
}
