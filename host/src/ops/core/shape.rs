//! Operators that change the shape and keep the elements, and those on shapes themselves.

use crate::eval::kernels;
use crate::ir::{Context, DType, Dim, Type, TypeView};
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpError, OpPattern, attr, legalize,
};

macro_rules! shaping {
    ($($name:literal $summary:literal $count:literal $pattern:ident $infer:ident $evaluate:ident
       $legalize:expr, $attrs:expr;)*) => {$(
        inventory::submit! { OpDef {
            name: $name,
            summary: $summary,
            args: Arity::exactly($count),
            attrs: $attrs,
            pattern: OpPattern::$pattern,
            infer: $infer,
            evaluate: Some(kernels::shape::$evaluate),
            legalize: $legalize,
            ..OpDef::ELEMENTWISE
        } }
    )*};
}

shaping! {
    "reshape" "The same elements in the shape of the second argument" 2 Injective
        reshape reshape Some(legalize::reshape), &[];
    "transpose" "The axes in another order" 1 Injective
        transpose transpose Some(legalize::transpose), TRANSPOSE;
    "expand_dims" "Axes of extent 1 at places of the result" 1 Broadcast
        expand_dims reshape Some(legalize::reshape), EXPAND_DIMS;
    "squeeze" "Without axes of extent 1" 1 Injective
        squeeze reshape Some(legalize::reshape), SQUEEZE;
    "broadcast_to" "Repeated along axes, in the shape of the second argument" 2 Broadcast
        broadcast_to broadcast_to Some(legalize::broadcast_to), &[];
    "full" "A tensor of the shape of the argument, of one value" 1 Elementwise
        full full Some(legalize::full), FULL;
    "shape_of" "The shape of a tensor" 1 Opaque shape_of shape_of None, &[];
    "shape_to_tensor" "A shape as a tensor of i64" 1 Opaque shape_to_tensor identity None, &[];
    "tensor_to_shape" "A tensor of i64 as a shape" 1 Opaque tensor_to_shape identity None, &[];
    "vm.shape_of" "As `shape_of`" 1 Opaque shape_of shape_of None, &[];
    "vm.shape_to_tensor" "As `shape_to_tensor`" 1 Opaque shape_to_tensor identity None, &[];
    "vm.tensor_to_shape" "As `tensor_to_shape`" 1 Opaque tensor_to_shape identity None, &[];
}

const TRANSPOSE: &[AttrDef] = &[attr(
    "axes",
    AttrKind::Ints,
    AttrDefault::Absent,
    "for each axis of the result, which it is; reversed when not given",
)];
const EXPAND_DIMS: &[AttrDef] =
    &[attr("axis", AttrKind::Ints, AttrDefault::Required, "the axes of the result that are new")];
const SQUEEZE: &[AttrDef] = &[attr(
    "axis",
    AttrKind::Ints,
    AttrDefault::Absent,
    "the axes; all of extent 1 when not given",
)];
const FULL: &[AttrDef] = &[
    attr("value", AttrKind::Any, AttrDefault::Required, "a number or a truth value"),
    attr("dtype", AttrKind::Str, AttrDefault::Str("f32"), "the element type"),
];

fn reshape(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let shape = cx.shape(1)?;
    if let (Some(dims), Some(shape)) = (tensor.dims, shape) {
        let count =
            |dims: &[Dim]| dims.iter().fold(cx.cx.dim(1), |count, &dim| cx.cx.dim_mul(count, dim));
        if cx.is_different(count(dims), count(shape)) {
            return Err(cx.mismatch("the numbers of elements", dims, shape));
        }
    }
    Ok(cx.tensor_type(tensor.dtype, shape))
}

fn transpose(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let Some(dims) = tensor.dims else { return cx.arg(0) };
    let axes = match cx.attrs.has("axes") {
        true => cx.axes("axes", &cx.attrs.ints("axes")?, dims.len())?,
        false => (0..dims.len()).rev().collect(),
    };
    if axes.len() != dims.len() {
        return cx.bad_attr("axes", axes, format!("the tensor has {} dimensions", dims.len()));
    }
    let dims: Vec<Dim> = axes.iter().map(|&axis| dims[axis]).collect();
    Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
}

fn expand_dims(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let Some(dims) = tensor.dims else { return cx.arg(0) };
    let given = cx.attrs.ints("axis")?;
    let axes = cx.axes("axis", &given, dims.len() + given.len())?;
    let mut rest = dims.iter();
    let dims: Vec<Dim> = (0..dims.len() + axes.len())
        .map(|axis| match axes.contains(&axis) {
            true => cx.cx.dim(1),
            false => *rest.next().expect("as many as are not new"),
        })
        .collect();
    Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
}

fn squeeze(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let Some(dims) = tensor.dims else { return cx.arg(0) };
    let is_one = |axis: usize| cx.value(dims[axis]) == Some(1);
    let axes: Vec<usize> = match cx.attrs.has("axis") {
        true => cx.axes("axis", &cx.attrs.ints("axis")?, dims.len())?,
        false => (0..dims.len()).filter(|&axis| is_one(axis)).collect(),
    };
    if let Some(&axis) =
        axes.iter().find(|&&axis| cx.value(dims[axis]).is_some_and(|value| value != 1))
    {
        let reason = format!("that dimension is {}", cx.terms().dim_text(dims[axis]));
        return cx.bad_attr("axis", axis, reason);
    }
    let dims: Vec<Dim> = dims
        .iter()
        .enumerate()
        .filter(|(axis, _)| !axes.contains(axis))
        .map(|(_, &dim)| dim)
        .collect();
    Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
}

fn broadcast_to(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let shape = cx.shape(1)?;
    if let (Some(dims), Some(shape)) = (tensor.dims, shape) {
        let fits = |(&dim, &target): (&Dim, &Dim)| {
            cx.value(dim) == Some(1) || cx.value(dim).is_none() || !cx.is_different(dim, target)
        };
        if dims.len() > shape.len() || !dims.iter().rev().zip(shape.iter().rev()).all(fits) {
            return Err(cx.mismatch("the shape and the one it is broadcast to", dims, shape));
        }
    }
    Ok(cx.tensor_type(tensor.dtype, shape))
}

fn full(cx: &InferCx<'_>) -> Result<Type, OpError> {
    Ok(cx.tensor_type(cx.attrs.dtype("dtype")?, cx.shape(0)?))
}

fn shape_of(cx: &InferCx<'_>) -> Result<Type, OpError> {
    Ok(cx.cx.shape_type(cx.tensor(0)?.dims))
}

fn shape_to_tensor(cx: &InferCx<'_>) -> Result<Type, OpError> {
    match cx.shape(0)? {
        Some(dims) => Ok(cx.cx.static_tensor_type(DType::I64, &[dims.len() as i64])),
        None => Err(cx.wrong_arg(0, "a shape of known rank")),
    }
}

fn tensor_to_shape(cx: &InferCx<'_>) -> Result<Type, OpError> {
    match cx.terms().ty(cx.arg(0)?) {
        TypeView::Tensor { dtype: DType::I64, dims: None | Some([_]) } => {
            Ok(cx.cx.shape_type(None))
        }
        _ => Err(cx.wrong_arg(0, "a tensor of i64 of one dimension")),
    }
}
