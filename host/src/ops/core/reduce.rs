//! Reductions along axes.

use crate::eval::kernels;
use crate::ir::{Context, DType, Dim, Type};
use crate::ops::{
    AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpError, OpPattern, attr, legalize,
};

macro_rules! reduction {
    ($($name:literal $summary:literal $infer:ident $evaluate:ident $legalize:ident
       $attrs:ident;)*) => {$(
        inventory::submit! { OpDef {
            name: $name,
            summary: $summary,
            attrs: $attrs,
            pattern: OpPattern::Reduction,
            infer: $infer,
            evaluate: Some(kernels::reduce::$evaluate),
            legalize: Some(legalize::$legalize),
            ..OpDef::ELEMENTWISE
        } }
    )*};
}

reduction! {
    "sum" "Sum along axes" reduce sum reduce REDUCE;
    "mean" "Mean along axes" mean mean reduce REDUCE;
    "max" "The largest element along axes" reduce max reduce REDUCE;
    "min" "The smallest element along axes" reduce min reduce REDUCE;
    "prod" "Product along axes" reduce prod reduce REDUCE;
    "argmax" "The index of the largest element along an axis, the first of equal ones"
        arg argmax arg_extreme ARG;
    "argmin" "The index of the smallest element along an axis, the first of equal ones"
        arg argmin arg_extreme ARG;
}

const KEEPDIMS: AttrDef = attr(
    "keepdims",
    AttrKind::Bool,
    AttrDefault::Bool(false),
    "whether the axes stay, with extent 1",
);
const REDUCE: &[AttrDef] =
    &[attr("axis", AttrKind::Ints, AttrDefault::Absent, "the axes; all when not given"), KEEPDIMS];
const ARG: &[AttrDef] = &[attr("axis", AttrKind::Int, AttrDefault::Int(0), "the axis"), KEEPDIMS];

fn mean(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    reduce(cx)
}

fn reduce(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    if tensor.dtype.is_bool() {
        let found = tensor.dtype;
        return Err(OpError::WrongDType { index: 0, expected: "a number".into(), found });
    }
    let Some(dims) = tensor.dims else { return Ok(cx.tensor_type(tensor.dtype, None)) };
    let axes = match cx.attrs.has("axis") {
        true => cx.axes("axis", &cx.attrs.ints("axis")?, dims.len())?,
        false => (0..dims.len()).collect(),
    };
    reduced(cx, tensor.dtype, dims, &axes)
}

fn arg(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let Some(dims) = cx.tensor(0)?.dims else { return Ok(cx.tensor_type(DType::I64, None)) };
    let axis = cx.axis("axis", cx.attrs.int("axis")?, dims.len())?;
    if cx.value(dims[axis]) == Some(0) {
        return cx.bad_attr("axis", axis, "there is no element along it");
    }
    reduced(cx, DType::I64, dims, &[axis])
}

fn reduced(cx: &InferCx<'_>, dtype: DType, dims: &[Dim], axes: &[usize]) -> Result<Type, OpError> {
    let keepdims = cx.attrs.bool("keepdims")?;
    let dims: Vec<Dim> = dims
        .iter()
        .enumerate()
        .filter_map(|(axis, &dim)| match axes.contains(&axis) {
            true => keepdims.then(|| cx.cx.dim(1)),
            false => Some(dim),
        })
        .collect();
    Ok(cx.tensor_type(dtype, Some(&dims)))
}
