//! Shapes that are broadcast against each other, aligned at the last dimension.

use tenon_plugin_api::op::prelude::*;

/// Two numbers of one type, which is that of the result.
pub(crate) fn numbers(cx: &InferCx<'_>) -> Result<Type> {
    cx.check_same_dtype(1)?;
    let found = cx.tensor(0)?.dtype;
    match found.is_bool() {
        true => Err(OpError::WrongDType { index: 0, expected: "a number".into(), found }),
        false => broadcast_all(cx, found),
    }
}

/// Two elements of one type; the result is of truth values.
pub(crate) fn comparison(cx: &InferCx<'_>) -> Result<Type> {
    cx.check_same_dtype(1)?;
    broadcast_all(cx, DType::BOOL)
}

/// Two truth values; so is the result.
pub(crate) fn truths(cx: &InferCx<'_>) -> Result<Type> {
    for index in 0..2 {
        check_bool(cx, index)?;
    }
    broadcast_all(cx, DType::BOOL)
}

/// That an argument has truth values.
pub(crate) fn check_bool(cx: &InferCx<'_>, index: usize) -> Result<()> {
    let found = cx.tensor(index)?.dtype;
    match found.is_bool() {
        true => Ok(()),
        false => Err(OpError::WrongDType { index, expected: "bool".into(), found }),
    }
}

/// The tensor type of all arguments, broadcast against each other.
pub(crate) fn broadcast_all(cx: &InferCx<'_>, dtype: DType) -> Result<Type> {
    let mut dims: Option<Vec<Dim>> = Some(Vec::new());
    for index in 0..cx.args.len() {
        dims = match (dims, cx.tensor(index)?.dims) {
            (Some(left), Some(right)) => Some(broadcast(cx, &left, right)?),
            _ => None,
        };
    }
    Ok(cx.tensor_type(dtype, dims.as_deref()))
}

/// The shape that two shapes are broadcast to.
pub(crate) fn broadcast(cx: &InferCx<'_>, left: &[Dim], right: &[Dim]) -> Result<Vec<Dim>> {
    let rank = left.len().max(right.len());
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        let at = |dims: &[Dim]| (axis + dims.len()).checked_sub(rank).map(|index| dims[index]);
        dims.push(match (at(left), at(right)) {
            (Some(a), Some(b)) => {
                broadcast_dim(cx, a, b).ok_or_else(|| cx.mismatch("the shapes", left, right))?
            }
            (Some(dim), None) | (None, Some(dim)) => dim,
            (None, None) => unreachable!("one of them has the rank"),
        });
    }
    Ok(dims)
}

/// The dimension that two are broadcast to: equal ones are themselves, and 1 gives way. What is not known
/// to fail is left to run time, where two dimensions that fit are either equal or one of them is 1.
fn broadcast_dim(cx: &InferCx<'_>, a: Dim, b: Dim) -> Option<Dim> {
    let dim = match (cx.value(a), cx.value(b)) {
        _ if a == b => a,
        (Some(1), _) => b,
        (_, Some(1)) => a,
        (Some(_), _) => a,
        (None, Some(_)) => b,
        (None, None) => cx.dim_max(a, b),
    };
    let fits = |own| !cx.is_no_repeat(own, dim);
    (fits(a) && fits(b)).then_some(dim)
}
