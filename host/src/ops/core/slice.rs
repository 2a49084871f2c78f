//! Operators that put tensors together and take parts of them.

use crate::eval::kernels;
use crate::ir::{Context, Dim, Type, TypeView};
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpError, OpPattern, attr, legalize,
};

inventory::submit! { OpDef {
    name: "concatenate",
    summary: "The tensors of a tuple one after the other along an axis",
    attrs: CONCATENATE,
    pattern: OpPattern::Injective,
    infer: concatenate,
    evaluate: Some(kernels::slice::concatenate),
    legalize: Some(legalize::concatenate),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "split",
    summary: "The parts of a tensor along an axis, as a tuple",
    attrs: SPLIT,
    pattern: OpPattern::Injective,
    infer: split,
    evaluate: Some(kernels::slice::split),
    legalize: Some(legalize::split),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "strided_slice",
    summary: "A range of indices along axes; negative ones count from the end, and all are clamped",
    attrs: STRIDED_SLICE,
    pattern: OpPattern::Injective,
    infer: strided_slice,
    evaluate: Some(kernels::slice::strided_slice),
    legalize: Some(legalize::strided_slice),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "take",
    summary: "Parts of the first argument along an axis, at the indices in the second",
    args: Arity::exactly(2),
    attrs: TAKE,
    pattern: OpPattern::Injective,
    infer: take,
    evaluate: Some(kernels::slice::take),
    legalize: Some(legalize::take),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "index_add",
    summary: "The first argument with parts added along an axis: the third argument, at the indices in the second",
    args: Arity::exactly(3),
    attrs: TAKE,
    pattern: OpPattern::Opaque,
    infer: index_add,
    evaluate: Some(kernels::slice::index_add),
    legalize: Some(legalize::index_add),
    ..OpDef::ELEMENTWISE
} }

const CONCATENATE: &[AttrDef] =
    &[attr("axis", AttrKind::Int, AttrDefault::Int(0), "the axis they are joined along")];
const SPLIT: &[AttrDef] = &[
    attr("indices", AttrKind::Ints, AttrDefault::Absent, "where the second and later parts begin"),
    attr("sections", AttrKind::Int, AttrDefault::Absent, "the number of equal parts"),
    attr("axis", AttrKind::Int, AttrDefault::Int(0), "the axis that is divided"),
];
const STRIDED_SLICE: &[AttrDef] = &[
    attr("begin", AttrKind::Ints, AttrDefault::Required, "first index along each axis"),
    attr("end", AttrKind::Ints, AttrDefault::Required, "the index to stop before"),
    attr("strides", AttrKind::Ints, AttrDefault::Absent, "steps; 1 when not given"),
    attr("axes", AttrKind::Ints, AttrDefault::Absent, "the axes; the first ones when not given"),
];
const TAKE: &[AttrDef] =
    &[attr("axis", AttrKind::Int, AttrDefault::Int(0), "the axis that is indexed")];

fn concatenate(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let fields = cx.tuple(0)?;
    let mut joined: Option<(crate::ir::DType, Vec<Dim>, usize)> = None;
    let mut unranked = None;
    for &field in fields {
        let TypeView::Tensor { dtype, dims } = cx.terms().ty(field) else {
            return Err(cx.wrong_arg(0, "a tuple of tensors"));
        };
        let Some(dims) = dims else {
            unranked = Some(dtype);
            continue;
        };
        let Some((expected, sum, axis)) = &mut joined else {
            let axis = cx.axis("axis", cx.attrs.int("axis")?, dims.len())?;
            joined = Some((dtype, dims.to_vec(), axis));
            continue;
        };
        if *expected != dtype {
            let expected = expected.to_string();
            return Err(OpError::WrongDType { index: 0, expected, found: dtype });
        }
        let is_wrong = |other: usize| other != *axis && cx.is_different(sum[other], dims[other]);
        if dims.len() != sum.len() || (0..dims.len()).any(is_wrong) {
            return Err(cx.mismatch("the shapes of the parts", sum, dims));
        }
        sum[*axis] = cx.cx.dim_add(sum[*axis], dims[*axis]);
    }
    match (joined, unranked) {
        (_, Some(dtype)) => Ok(cx.tensor_type(dtype, None)),
        (Some((dtype, dims, _)), None) => Ok(cx.tensor_type(dtype, Some(&dims))),
        (None, None) => Err(cx.wrong_arg(0, "a tuple of at least one tensor")),
    }
}

fn split(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let Some(dims) = tensor.dims else {
        return Err(cx.wrong_arg(0, "a tensor of known rank"));
    };
    let axis = cx.axis("axis", cx.attrs.int("axis")?, dims.len())?;
    let part = |extent: Dim| {
        let mut dims = dims.to_vec();
        dims[axis] = extent;
        cx.cx.tensor_type(tensor.dtype, &dims)
    };
    let extent = cx.value(dims[axis]);
    let parts: Vec<Type> = match (cx.attrs.has("indices"), cx.attrs.has("sections")) {
        (false, true) => {
            let sections = cx.attrs.int("sections")?;
            if !(1..=65536).contains(&sections)
                || extent.is_some_and(|extent| extent % sections != 0)
            {
                let reason = format!("it must divide {}", cx.terms().dim_text(dims[axis]));
                return cx.bad_attr("sections", sections, reason);
            }
            let each = cx.cx.dim_floor_div(dims[axis], cx.cx.dim(sections));
            vec![part(each); sections as usize]
        }
        (true, false) => {
            let indices = cx.attrs.ints("indices")?;
            let starts: Vec<i64> = [0].into_iter().chain(indices.iter().copied()).collect();
            let is_sorted = starts.windows(2).all(|pair| pair[0] <= pair[1]);
            if !is_sorted || extent.is_some_and(|extent| starts.iter().any(|&start| start > extent))
            {
                let extent = cx.terms().dim_text(dims[axis]);
                return cx.bad_attr(
                    "indices",
                    indices,
                    format!("they must ascend from 0 to {extent}"),
                );
            }
            let last = cx.cx.dim_sub(dims[axis], cx.cx.dim(starts[starts.len() - 1]));
            starts
                .windows(2)
                .map(|pair| cx.cx.dim(pair[1] - pair[0]))
                .chain([last])
                .map(part)
                .collect()
        }
        _ => return cx.unsupported("exactly one of `indices` and `sections` must be given"),
    };
    Ok(cx.cx.tuple_type(&parts))
}

fn strided_slice(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let begin = cx.attrs.ints("begin")?;
    let end = cx.attrs.ints("end")?;
    let strides = match cx.attrs.has("strides") {
        true => cx.attrs.ints("strides")?,
        false => vec![1; begin.len()],
    };
    let Some(dims) = tensor.dims else { return cx.arg(0) };
    let axes = match cx.attrs.has("axes") {
        true => cx.axes("axes", &cx.attrs.ints("axes")?, dims.len())?,
        false if begin.len() <= dims.len() => (0..begin.len()).collect(),
        false => return cx.bad_attr("begin", begin, "it is longer than the shape"),
    };
    if [end.len(), strides.len(), axes.len()] != [begin.len(); 3] {
        return cx.unsupported("`begin`, `end`, `strides` and `axes` differ in length");
    }
    let mut sliced = dims.to_vec();
    for (i, &axis) in axes.iter().enumerate() {
        if strides[i] == 0 {
            return cx.bad_attr("strides", &strides, "a step of 0 leads nowhere");
        }
        sliced[axis] = slice_extent(cx, dims[axis], begin[i], end[i], strides[i])?;
    }
    Ok(cx.tensor_type(tensor.dtype, Some(&sliced)))
}

fn slice_extent(
    cx: &InferCx<'_>,
    dim: Dim,
    begin: i64,
    end: i64,
    stride: i64,
) -> Result<Dim, OpError> {
    if let Some(extent) = cx.value(dim) {
        return Ok(cx.cx.dim(slice_range(extent, begin, end, stride).1));
    }
    if stride < 0 {
        return cx.unsupported("a negative step along a symbolic dimension");
    }
    let zero = cx.cx.dim(0);
    let at_least = |dim: Dim, bound: i64| cx.lower_bound(dim).is_some_and(|least| least >= bound);
    let positive = |dim: Dim| if at_least(dim, 0) { dim } else { cx.cx.dim_max(dim, zero) };
    let clamp = |index: i64| match index {
        _ if index >= i32::MAX as i64 => dim,
        _ if index <= -(i32::MAX as i64) => zero,
        0.. if at_least(dim, index) => cx.cx.dim(index),
        0.. => cx.cx.dim_min(cx.cx.dim(index), dim),
        _ => positive(cx.cx.dim_add(dim, cx.cx.dim(index))),
    };
    let room = positive(cx.cx.dim_sub(clamp(end), clamp(begin)));
    let room = cx.cx.dim_add(room, cx.cx.dim(stride - 1));
    Ok(cx.cx.dim_floor_div(room, cx.cx.dim(stride)))
}

/// The first index and the number of indices that a slice of an axis of `extent` has.
pub(crate) fn slice_range(extent: i64, begin: i64, end: i64, stride: i64) -> (i64, i64) {
    let (low, high) = if stride > 0 { (0, extent) } else { (-1, extent - 1) };
    let clamp = |index: i64| {
        let index = if index < 0 { index.saturating_add(extent) } else { index };
        index.clamp(low, high.max(low))
    };
    let (begin, end) = (clamp(begin), clamp(end));
    let count = match stride > 0 {
        true => (end - begin + stride - 1).div_euclid(stride),
        false => (begin - end - stride - 1).div_euclid(stride.saturating_neg()),
    };
    (begin, count.max(0))
}

/// What is added has the shape of `take` with the same indices.
fn index_add(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_same_dtype(2)?;
    let found = cx.tensor(0)?.dtype;
    if found.is_bool() {
        return Err(OpError::WrongDType { index: 0, expected: "a number".into(), found });
    }
    let parts = cx.terms().ty(take(cx)?);
    if let (TypeView::Tensor { dims: Some(parts), .. }, Some(added)) = (parts, cx.tensor(2)?.dims) {
        let is_different = |(&a, &b): (&Dim, &Dim)| cx.is_different(a, b);
        if parts.len() != added.len() || parts.iter().zip(added).any(is_different) {
            return Err(cx.mismatch("the shapes of the parts and of what is added", parts, added));
        }
    }
    cx.arg(0)
}

fn take(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let indices = cx.tensor(1)?;
    if !indices.dtype.is_int() {
        let expected = "an integer type".into();
        return Err(OpError::WrongDType { index: 1, expected, found: indices.dtype });
    }
    let (Some(dims), Some(index_dims)) = (tensor.dims, indices.dims) else {
        return Ok(cx.tensor_type(tensor.dtype, None));
    };
    let axis = cx.axis("axis", cx.attrs.int("axis")?, dims.len())?;
    let dims: Vec<Dim> =
        dims[..axis].iter().chain(index_dims).chain(&dims[axis + 1..]).copied().collect();
    Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
}

#[cfg(test)]
mod tests {
    use super::slice_range;

    #[test]
    fn slices_are_those_of_numpy() {
        assert_eq!(slice_range(10, 2, 8, 1), (2, 6));
        assert_eq!(slice_range(10, 2, 8, 4), (2, 2));
        assert_eq!(slice_range(10, -3, i64::MAX, 1), (7, 3));
        assert_eq!(slice_range(10, 20, 30, 1), (10, 0));
        assert_eq!(slice_range(10, -1, i64::MIN, -1), (9, 10));
        assert_eq!(slice_range(10, 9, 0, -3), (9, 3));
        assert_eq!(slice_range(0, 0, 5, 1), (0, 0));
        assert_eq!(slice_range(0, -1, i64::MIN, -1), (-1, 0));
        assert_eq!(slice_range(10, 5, 2, 1).1, 0);
    }
}
