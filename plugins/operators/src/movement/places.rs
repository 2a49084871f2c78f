//! Places along an axis.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

use crate::kernel::space::{Rows, row_major};

/// The extents before, at and after an axis.
pub(crate) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// The indices along an axis that a tensor holds; one below zero counts from the end.
pub(crate) fn places_of(indices: &Tensor, axis: usize, extent: usize) -> Result<Vec<usize>> {
    indices_of(indices)?.into_iter().map(|index| place_of(index, axis, extent)).collect()
}

fn place_of(index: i64, axis: usize, extent: usize) -> Result<usize> {
    let place = if index < 0 { index + extent as i64 } else { index };
    match (0..extent as i64).contains(&place) {
        true => Ok(place as usize),
        false => Err(OpError::Value(format!(
            "index {index} is outside of axis {axis}, which has extent {extent}"
        ))),
    }
}

/// For each index that a tensor holds the number of the element of a tensor of `shape` at the same place, but for the axis
/// that is indexed.
pub(crate) fn elements_at(shape: &[usize], indices: &Tensor, axis: usize) -> Result<Vec<usize>> {
    let mut strides = row_major(shape);
    let step = std::mem::take(&mut strides[axis]) as usize;
    let strides: Vec<[isize; 1]> = strides.into_iter().map(|stride| [stride]).collect();
    let rows = Rows::new(indices.shape(), &strides, 0);
    let places = places_of(indices, axis, shape[axis])?;
    Ok(places.into_iter().zip(rows).map(|(place, [start])| start as usize + place * step).collect())
}

/// For each vector of indices that a tensor holds the number of the first element of a tensor of `shape` that it leads to. The
/// first `batch` axes of both go together.
pub(crate) fn parts_at(shape: &[usize], indices: &Tensor, batch: usize) -> Result<Vec<usize>> {
    let Some((&count, outer)) = indices.shape().split_last() else {
        return Err(OpError::Unsupported("indices without an axis".into()));
    };
    let strides = row_major(shape);
    let whole: usize = shape[batch..].iter().product();
    let per_batch = outer[batch..].iter().product::<usize>().max(1);
    let numbers = indices_of(indices)?;
    let start = |number: usize| {
        let vector = &numbers[number * count..][..count];
        let from = number / per_batch * whole;
        vector.iter().enumerate().try_fold(from, |start, (position, &index)| {
            let axis = batch + position;
            Ok(start + place_of(index, axis, shape[axis])? * strides[axis] as usize)
        })
    };
    (0..outer.iter().product()).map(start).collect()
}

fn indices_of(tensor: &Tensor) -> Result<Vec<i64>> {
    with_number!(tensor.dtype(), T => {
        Ok(tensor.elements::<T>().iter().map(|&index| index.to_i64()).collect())
    })
}

/// The type of the parts of the first argument along an axis, at the indices in the second.
pub(crate) fn taken(cx: &InferCx<'_>, axis: i64) -> Result<Type> {
    let tensor = cx.tensor(0)?;
    let (Some(dims), Some(index_dims)) = (tensor.dims, index_dims(cx)?) else {
        return Ok(cx.tensor_type(tensor.dtype, None));
    };
    let axis = cx.axis("axis", axis, dims.len())?;
    let dims: Vec<Dim> =
        dims[..axis].iter().chain(index_dims).chain(&dims[axis + 1..]).copied().collect();
    Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
}

/// That an argument holds indices, and its dimensions.
fn index_dims<'a>(cx: &InferCx<'a>) -> Result<Option<&'a [Dim]>> {
    let indices = cx.tensor(1)?;
    match indices.dtype.is_int() {
        true => Ok(indices.dims),
        false => {
            let expected = "an integer type".into();
            Err(OpError::WrongDType { index: 1, expected, found: indices.dtype })
        }
    }
}

/// The type of what is taken from along axes of `extents`, which is there where anything is taken: an index into nothing could not be moved
/// to any place. Where only a call can tell, each call is checked.
pub(crate) fn where_there_is_any(cx: &InferCx<'_>, extents: &[Dim], taken: Type) -> Type {
    let may_be_zero = |dim: &Dim| cx.lower_bound(*dim).is_none_or(|least| least < 1);
    let open = |dims: &[Dim]| -> Dim {
        let dims: Vec<Dim> = dims.iter().copied().filter(may_be_zero).collect();
        cx.dim_product(&dims)
    };
    let extent = open(extents);
    if let (None, TypeView::Tensor { dims: Some(result), .. }) =
        (cx.value(extent), cx.terms().ty(taken))
    {
        let is_any = cx.dim_min(open(result), cx.dim(1));
        cx.is_different(cx.dim_max(extent, is_any), extent);
    }
    taken
}

/// The type of the elements of the first argument at the indices in the second, of which each has a place of its own.
pub(crate) fn elements_taken(cx: &InferCx<'_>, axis: i64) -> Result<Type> {
    let tensor = cx.tensor(0)?;
    let indices = index_dims(cx)?;
    let (Some(dims), Some(index_dims)) = (tensor.dims, indices) else {
        return Ok(cx.tensor_type(tensor.dtype, indices));
    };
    let axis = cx.axis("axis", axis, dims.len())?;
    let is_beyond = |(other, (&index, &dim)): (usize, (&Dim, &Dim))| {
        let beyond = cx.lower_bound(cx.dim_sub(index, dim));
        other != axis && beyond.is_some_and(|beyond| beyond > 0)
    };
    let mut pairs = index_dims.iter().zip(dims).enumerate();
    if dims.len() != index_dims.len() || pairs.any(is_beyond) {
        return Err(cx.mismatch("the shapes of the data and of the indices", dims, index_dims));
    }
    Ok(cx.tensor_type(tensor.dtype, Some(index_dims)))
}

/// The type of the parts of the first argument at the vectors of indices in the second. The first `batch` axes of both go
/// together.
pub(crate) fn parts_taken(cx: &InferCx<'_>, batch: i64) -> Result<Type> {
    let tensor = cx.tensor(0)?;
    let (Some(dims), Some(index_dims)) = (tensor.dims, index_dims(cx)?) else {
        return Ok(cx.tensor_type(tensor.dtype, None));
    };
    let Some((&last, outer)) = index_dims.split_last() else {
        return Err(cx.wrong_arg(1, "a tensor of one dimension at least"));
    };
    let batch = match usize::try_from(batch) {
        Ok(batch) if batch <= outer.len().min(dims.len()) => batch,
        _ => return cx.bad_attr("batch_dims", batch, "both tensors must have these dimensions"),
    };
    let mut pairs = dims[..batch].iter().zip(outer);
    if pairs.any(|(&a, &b)| cx.is_different(a, b)) {
        return Err(cx.mismatch("the batches", &dims[..batch], &outer[..batch]));
    }
    let Some(count) = cx.value(last) else {
        let last = cx.terms().dim_text(last);
        return cx.unsupported(format!("vectors of {last} indices, which is no number"));
    };
    match usize::try_from(count).ok().and_then(|count| dims[batch..].get(count..)) {
        Some(rest) => {
            let dims: Vec<Dim> = outer.iter().chain(rest).copied().collect();
            Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
        }
        None => Err(cx.mismatch("the data and the vectors of indices", dims, index_dims)),
    }
}

/// The type of data into which parts are put, of which `parts` is the type that they would have when taken.
pub(crate) fn scattered(cx: &InferCx<'_>, reduction: &str, parts: Type) -> Result<Type> {
    cx.check_same_dtype(2)?;
    let found = cx.tensor(0)?.dtype;
    if found.is_bool() && reduction != "update" {
        return Err(OpError::WrongDType { index: 0, expected: "a number".into(), found });
    }
    if let (TypeView::Tensor { dims: Some(parts), .. }, Some(given)) =
        (cx.terms().ty(parts), cx.tensor(2)?.dims)
    {
        let is_different = |(&a, &b): (&Dim, &Dim)| cx.is_different(a, b);
        if parts.len() != given.len() || parts.iter().zip(given).any(is_different) {
            return Err(cx.mismatch("the indices and the updates", parts, given));
        }
    }
    cx.arg(0)
}
