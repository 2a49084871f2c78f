//! Operators that the compiler itself brings in: calls of tensor programs, closures, and memory.
//!
//! They are evaluated by the evaluator, not by a kernel: they need the module and its memory.

use crate::infer::{fits, instantiate};
use crate::ir::{Context, DType, DimBindings, Type, TypeView, substitute};
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpEffect, OpError, OpPattern, attr,
};

/// Name of the call of a tensor program whose results are new tensors.
pub const CALL_TIR: &str = "call_tir";
/// Name of the call of a tensor program whose result is one new dimension.
pub const CALL_SCALAR: &str = "call_scalar";
/// Name of the call of a function, a closure or something external that promises to have no effect.
pub const CALL_PURE: &str = "call_pure";
/// Name of the operator that makes a closure.
pub const MAKE_CLOSURE: &str = "make_closure";
/// Name of the operator that makes a tensor.
pub const ALLOC_TENSOR: &str = "builtin.alloc_tensor";
/// Name of the operator that makes a storage.
pub const MEMORY_ALLOC_STORAGE: &str = "memory.alloc_storage";
/// Name of the operator that makes a tensor in a storage.
pub const MEMORY_ALLOC_TENSOR: &str = "memory.alloc_tensor";
/// Name of the operator that looks at a tensor as one of another shape.
pub const MEMORY_VIEW: &str = "memory.view";
/// Name of the operator that ends the life of a tensor or storage.
pub const MEMORY_KILL: &str = "memory.kill";
/// Class of the object that a storage is.
pub const STORAGE_CLASS: &str = "storage";
/// Class of the object that an external function is as an argument.
pub const EXTERN_CLASS: &str = "extern";

inventory::submit! { OpDef {
    name: CALL_TIR,
    summary: "Calls a tensor program with the arguments and new tensors for its outputs, and returns those",
    args: Arity::at_least(1),
    attrs: &[attr("out", AttrKind::Type, AttrDefault::Required, "type of the result: a tensor or a tuple of tensors")],
    pattern: OpPattern::Opaque,
    infer: call_tir,
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: CALL_SCALAR,
    summary: "Calls a tensor program with the arguments and a new i64[] for its output, and returns its element",
    args: Arity::at_least(1),
    pattern: OpPattern::Opaque,
    infer: |cx| Ok(cx.cx.scalar_type(DType::I64)),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: CALL_PURE,
    summary: "Calls its first argument with the others; the caller promises that this has no effect",
    args: Arity::at_least(1),
    attrs: &[attr("out", AttrKind::Type, AttrDefault::Absent, "type of the result, for an external function")],
    effect: OpEffect::Shares,
    pattern: OpPattern::Opaque,
    infer: call_pure,
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: MAKE_CLOSURE,
    summary: "A function of the module with values for its last parameters; a call of it gives the others",
    args: Arity::at_least(1),
    effect: OpEffect::Shares,
    pattern: OpPattern::Opaque,
    infer: make_closure,
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: ALLOC_TENSOR,
    summary: "A new tensor whose elements are not set",
    args: Arity::exactly(0),
    attrs: &[TY],
    effect: OpEffect::Makes,
    pattern: OpPattern::Opaque,
    infer: |cx| cx.attrs.ty("ty"),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: MEMORY_ALLOC_STORAGE,
    summary: "Memory for tensors",
    args: Arity::between(0, 1),
    attrs: &[
        attr("size", AttrKind::Int, AttrDefault::Absent, "bytes, where no argument says how many"),
        attr("align", AttrKind::Int, AttrDefault::Int(64), "alignment in bytes, a power of two"),
    ],
    effect: OpEffect::Makes,
    pattern: OpPattern::Opaque,
    infer: alloc_storage,
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: MEMORY_ALLOC_TENSOR,
    summary: "A tensor in a storage",
    args: Arity::exactly(1),
    attrs: &[attr("offset", AttrKind::Int, AttrDefault::Int(0), "bytes before it"), TY],
    effect: OpEffect::Makes,
    pattern: OpPattern::Opaque,
    infer: alloc_tensor,
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: MEMORY_VIEW,
    summary: "The memory of a tensor as a tensor of another type of the same size; a shape where the type says none",
    args: Arity::between(1, 2),
    attrs: &[TY],
    effect: OpEffect::Makes,
    pattern: OpPattern::Opaque,
    infer: view,
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: MEMORY_KILL,
    summary: "Says that a tensor or storage is not used any more",
    args: Arity::exactly(1),
    effect: OpEffect::Any,
    pattern: OpPattern::Opaque,
    infer: |cx| Ok(cx.cx.tuple_type(&[])),
    ..OpDef::ELEMENTWISE
} }

const TY: AttrDef = attr("ty", AttrKind::Type, AttrDefault::Required, "type of the tensor");

fn call_tir(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let out = cx.attrs.ty("out")?;
    let is_tensor = |&ty: &Type| matches!(cx.terms().ty(ty), TypeView::Tensor { .. });
    match cx.terms().ty(out) {
        TypeView::Tensor { .. } => Ok(out),
        TypeView::Tuple(fields) if fields.iter().all(is_tensor) => Ok(out),
        _ => cx.bad_attr("out", cx.terms().type_text(out), "it is a tensor or a tuple of tensors"),
    }
}

fn call_pure(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let callee = cx.arg(0)?;
    if callee == cx.cx.object_type(EXTERN_CLASS) {
        return cx.attrs.ty("out");
    }
    let result = instantiate(cx.cx, callee, &cx.args[1..]);
    let result = result.map_err(|problem| OpError::Unsupported(problem.to_string()))?;
    match cx.attrs.has("out") && cx.attrs.ty("out")? != result {
        true => {
            let out = cx.terms().type_text(cx.attrs.ty("out")?);
            cx.bad_attr("out", out, format!("the call gives {}", cx.terms().type_text(result)))
        }
        false => Ok(result),
    }
}

pub(super) fn make_closure(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let TypeView::Func { params, result } = cx.terms().ty(cx.arg(0)?) else {
        return Err(cx.wrong_arg(0, "a function"));
    };
    let captured = &cx.args[1..];
    let Some(free) = params.len().checked_sub(captured.len()) else {
        let count = captured.len();
        return Err(cx.wrong_arg(0, &format!("a function of {count} parameters or more")));
    };
    let mut dims = DimBindings::default();
    for (index, &param) in params[free..].iter().enumerate() {
        if !fits(cx.cx, param, cx.arg(index + 1)?, Some(&mut dims)) {
            return Err(cx.wrong_arg(index + 1, &cx.terms().type_text(param)));
        }
    }
    let ty = cx.cx.func_type(&params[..free], result);
    Ok(Type(substitute(cx.cx, ty.into(), &dims).0))
}

fn alloc_storage(cx: &InferCx<'_>) -> Result<Type, OpError> {
    match cx.args.len() {
        0 if cx.attrs.int("size")? < 0 => {
            return cx.bad_attr("size", cx.attrs.int("size")?, "it must not be negative");
        }
        0 => {}
        _ if cx.attrs.has("size") => {
            return cx.bad_attr("size", cx.attrs.int("size")?, "an argument says the size");
        }
        _ if cx.arg(0)? != cx.cx.scalar_type(DType::I64) => {
            return Err(cx.wrong_arg(0, "an i64"));
        }
        _ => {}
    }
    let align = cx.attrs.int("align")?;
    if align < 1 || align.count_ones() != 1 {
        return cx.bad_attr("align", align, "it must be a power of two");
    }
    Ok(cx.cx.object_type(STORAGE_CLASS))
}

fn alloc_tensor(cx: &InferCx<'_>) -> Result<Type, OpError> {
    if cx.arg(0)? != cx.cx.object_type(STORAGE_CLASS) {
        return Err(cx.wrong_arg(0, "an object<storage>"));
    }
    let offset = cx.attrs.int("offset")?;
    match offset < 0 {
        true => cx.bad_attr("offset", offset, "it must not be negative"),
        false => cx.attrs.ty("ty"),
    }
}

fn view(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let ty = cx.attrs.ty("ty")?;
    let terms = cx.terms();
    let bytes = |ty| {
        let (dtype, shape) = terms.static_tensor(ty)?;
        dtype.bytes(shape.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim.try_into().ok()?))?)
    };
    match (bytes(cx.arg(0)?), bytes(ty)) {
        (Some(from), Some(to)) if from != to => {
            cx.bad_attr("ty", terms.type_text(ty), format!("it has {to} bytes, its tensor {from}"))
        }
        _ => Ok(ty),
    }
}
