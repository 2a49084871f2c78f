//! Operators that the compiler itself brings in: calls of tensor programs, closures, and memory.
//!
//! They are evaluated by the evaluator, not by a kernel: they need the module and its memory.

use tenon_plugin_api::op::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpEffect, OpError, OpPattern, OpSchema, attr,
};

use super::RuntimeOp;
use crate::infer::{fits, instantiate};
use crate::op_names::{
    ALLOC_TENSOR, BIND_DIMS, CALL_PURE, CALL_SCALAR, CALL_TIR, EXPECT, EXPECT_FIT, EXTERN_CLASS,
    LOOP, MAKE_CLOSURE, MEMORY_ALLOC_STORAGE, MEMORY_ALLOC_TENSOR, MEMORY_COPY, MEMORY_KILL,
    MEMORY_PART, MEMORY_ROOM, MEMORY_VIEW, STORAGE_CLASS,
};
use crate::{Context, Cx, DType, Dim, DimBindings, DimView, Terms, Type, TypeView, substitute};

/// In the order in which they are documented.
pub(super) static OPERATORS: &[RuntimeOp] = &[
    RuntimeOp {
        schema: OpSchema {
            name: CALL_TIR,
            summary: "Calls a tensor program with the arguments and new tensors for its outputs, and returns those",
            args: Arity::at_least(1),
            attrs: &[attr(
                "out",
                AttrKind::Type,
                AttrDefault::Required,
                "type of the result: a tensor or a tuple of tensors",
            )],
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: call_tir,
    },
    RuntimeOp {
        schema: OpSchema {
            name: CALL_SCALAR,
            summary: "Calls a tensor program with the arguments and a new i64[] for its output, and returns its element",
            args: Arity::at_least(1),
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: |_, cx| Ok(cx.scalar_type(DType::I64)),
    },
    RuntimeOp {
        schema: OpSchema {
            name: CALL_PURE,
            summary: "Calls its first argument with the others; the caller promises that this has no effect",
            args: Arity::at_least(1),
            attrs: &[attr(
                "out",
                AttrKind::Type,
                AttrDefault::Absent,
                "type of the result, for an external function",
            )],
            effect: OpEffect::Shares,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: call_pure,
    },
    RuntimeOp {
        schema: OpSchema {
            name: LOOP,
            summary: "Calls a function for each trip, with its number and what the last trip gave, while that says so and trips \
                      are left; the function has no effect",
            args: Arity::exactly(4),
            attrs: &[attr(
                "out",
                AttrKind::Type,
                AttrDefault::Required,
                "type of the result: a tuple of what the last trip gave, then of the rows of all trips",
            )],
            effect: OpEffect::Shares,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: repeat,
    },
    RuntimeOp {
        schema: OpSchema {
            name: BIND_DIMS,
            summary: "A tensor of i64 as a shape, whose symbols stand for its elements from there on",
            args: Arity::exactly(1),
            attrs: &[
                attr(
                    "ty",
                    AttrKind::Type,
                    AttrDefault::Required,
                    "type of the result: a shape of symbols that stand for nothing else",
                ),
                attr(
                    "most",
                    AttrKind::Type,
                    AttrDefault::Absent,
                    "a shape that says what each element is at most; none is below 0. Where it is not said, memory for what \
                     comes of it is taken when it is known",
                ),
            ],
            effect: OpEffect::Any,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: bind_dims,
    },
    RuntimeOp {
        schema: OpSchema {
            name: MAKE_CLOSURE,
            summary: "A function of the module with values for its last parameters; a call of it gives the others",
            args: Arity::at_least(1),
            effect: OpEffect::Shares,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: make_closure,
    },
    RuntimeOp {
        schema: OpSchema {
            name: ALLOC_TENSOR,
            summary: "A new tensor whose elements are not set",
            args: Arity::exactly(0),
            attrs: &[TY],
            effect: OpEffect::Makes,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: |_, cx| cx.attrs.ty("ty"),
    },
    RuntimeOp {
        schema: OpSchema {
            name: MEMORY_ALLOC_STORAGE,
            summary: "Memory for tensors",
            args: Arity::between(0, 1),
            attrs: &[
                attr(
                    "size",
                    AttrKind::Int,
                    AttrDefault::Absent,
                    "bytes, where no argument says how many",
                ),
                attr(
                    "align",
                    AttrKind::Int,
                    AttrDefault::Int(64),
                    "alignment in bytes, a power of two",
                ),
            ],
            effect: OpEffect::Makes,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: alloc_storage,
    },
    RuntimeOp {
        schema: OpSchema {
            name: MEMORY_ALLOC_TENSOR,
            summary: "A tensor in a storage",
            args: Arity::exactly(1),
            attrs: &[attr("offset", AttrKind::Int, AttrDefault::Int(0), "bytes before it"), TY],
            effect: OpEffect::Makes,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: alloc_tensor,
    },
    RuntimeOp {
        schema: OpSchema {
            name: MEMORY_VIEW,
            summary: "The memory of a tensor as a tensor of another type of the same size; a shape where the type says none",
            args: Arity::between(1, 2),
            attrs: &[TY],
            effect: OpEffect::Makes,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: view,
    },
    RuntimeOp {
        schema: OpSchema {
            name: MEMORY_PART,
            summary: "A part of the memory of a tensor as a tensor of its own; both have extents that are known",
            args: Arity::exactly(1),
            attrs: &[attr("offset", AttrKind::Int, AttrDefault::Int(0), "bytes before it"), TY],
            effect: OpEffect::Makes,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: part,
    },
    RuntimeOp {
        schema: OpSchema {
            name: MEMORY_COPY,
            summary: "Writes the elements of its first argument to the memory of the second, a tensor of the same type, or to the \
                      front of one that is longer along one axis",
            args: Arity::exactly(2),
            effect: OpEffect::Any,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: copy,
    },
    RuntimeOp {
        schema: OpSchema {
            name: MEMORY_ROOM,
            summary: "The memory of its first argument, a result of the function, with all the room along one axis that the caller gave \
                      it and its second argument, a parameter; the extent of that axis is a symbol, which stands for the room \
                      from there on",
            args: Arity::exactly(2),
            attrs: &[TY],
            effect: OpEffect::Makes,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: room,
    },
    RuntimeOp {
        schema: OpSchema {
            name: EXPECT,
            summary: "Ends the call with an error where its argument, a bool[], is false",
            args: Arity::exactly(1),
            effect: OpEffect::Any,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: expect,
    },
    RuntimeOp {
        schema: OpSchema {
            name: EXPECT_FIT,
            summary: "Ends the call with an error where an extent of its first argument, a shape, is not that of the second",
            args: Arity::exactly(2),
            attrs: &[attr(
                "may_be_one",
                AttrKind::Bool,
                AttrDefault::Bool(false),
                "an extent of 1 fits as well",
            )],
            effect: OpEffect::Makes,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: expect_fit,
    },
    RuntimeOp {
        schema: OpSchema {
            name: MEMORY_KILL,
            summary: "Says that a tensor or storage is not used any more",
            args: Arity::exactly(1),
            effect: OpEffect::Any,
            pattern: OpPattern::Opaque,
            ..OpSchema::ELEMENTWISE
        },
        infer: |_, cx| Ok(cx.tuple_type(&[])),
    },
];

const TY: AttrDef = attr("ty", AttrKind::Type, AttrDefault::Required, "type of the tensor");

fn copy(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let (from, to) = (cx.arg(0)?, cx.arg(1)?);
    if cx.terms().tensor(from).is_none() {
        return Err(cx.wrong_arg(0, "a tensor of known rank"));
    }
    match from == to || longer_axis(cx.terms(), from, to).is_some() {
        true => Ok(cx.tuple_type(&[])),
        false => Err(cx.wrong_arg(1, &format!("a {}", cx.terms().type_text(from)))),
    }
}

/// The one axis along which two types of tensors differ, where they do in nothing else and its extents are not both known, or
/// the second is larger.
pub fn longer_axis(terms: Terms<'_>, from: Type, to: Type) -> Option<usize> {
    let (Some((dtype, dims)), Some((other, longer))) = (terms.tensor(from), terms.tensor(to))
    else {
        return None;
    };
    if dtype != other || dims.len() != longer.len() {
        return None;
    }
    let mut axes = (0..dims.len()).filter(|&axis| dims[axis] != longer[axis]);
    let (axis, None) = (axes.next()?, axes.next()) else { return None };
    match (terms.dim_value(dims[axis]), terms.dim_value(longer[axis])) {
        (Some(short), Some(long)) if short > long => None,
        _ => Some(axis),
    }
}

/// `memory.room(%new, %past) { ty = f32[2, r] }`: `r` is as much as there is room for in each row of both.
fn room(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let (terms, ty) = (cx.terms(), cx.attrs.ty("ty")?);
    let (new, past) = (cx.arg(0)?, cx.arg(1)?);
    let axis = longer_axis(terms, new, ty);
    let dim = axis.and_then(|axis| Some(terms.tensor(ty)?.1[axis]));
    if !dim.is_some_and(|dim| matches!(terms.dim(dim), DimView::Symbol(_))) {
        let what = format!("it is {} with a symbol for one extent", terms.type_text(new));
        return cx.bad_attr("ty", terms.type_text(ty), what);
    }
    match past == new || longer_axis(terms, past, new) == axis {
        true => Ok(ty),
        false => Err(cx.wrong_arg(1, "a tensor that is shorter along that axis")),
    }
}

fn expect(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    match cx.terms().static_tensor(cx.arg(0)?) {
        Some((DType::BOOL, shape)) if shape.is_empty() => Ok(cx.tuple_type(&[])),
        _ => Err(cx.wrong_arg(0, "a bool[]")),
    }
}

/// `expect_fit(shape(n, m), shape(3, k)) { may_be_one = true }`
fn expect_fit(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    match (cx.shape(0)?, cx.shape(1)?) {
        (Some(extents), Some(wanted)) if extents.len() == wanted.len() => Ok(cx.tuple_type(&[])),
        _ => Err(cx.wrong_arg(1, "a shape of as many extents as the first one")),
    }
}

fn call_tir(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let out = cx.attrs.ty("out")?;
    let is_tensor = |&ty: &Type| matches!(cx.terms().ty(ty), TypeView::Tensor { .. });
    match cx.terms().ty(out) {
        TypeView::Tensor { .. } => Ok(out),
        TypeView::Tuple(fields) if fields.iter().all(is_tensor) => Ok(out),
        _ => cx.bad_attr("out", cx.terms().type_text(out), "it is a tensor or a tuple of tensors"),
    }
}

fn call_pure(host: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let callee = cx.arg(0)?;
    if callee == cx.object_type(EXTERN_CLASS) {
        return cx.attrs.ty("out");
    }
    let result = instantiate(host, callee, &cx.args[1..]);
    let result = result.map_err(|problem| OpError::Unsupported(problem.to_string()))?;
    match cx.attrs.has("out") && cx.attrs.ty("out")? != result {
        true => {
            let out = cx.terms().type_text(cx.attrs.ty("out")?);
            cx.bad_attr("out", out, format!("the call gives {}", cx.terms().type_text(result)))
        }
        false => Ok(result),
    }
}

/// `loop(%f, limit, %go, (carried, …))`: `%f` takes the number of the trip and what is carried, and gives whether to go on,
/// what is carried, and rows.
fn repeat(host: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let terms = cx.terms();
    let tuple = |ty| match terms.ty(ty) {
        TypeView::Tuple(fields) => Some(fields),
        _ => None,
    };
    let TypeView::Func { params, result } = terms.ty(cx.arg(0)?) else {
        return Err(cx.wrong_arg(0, "a function"));
    };
    let number = cx.static_tensor_type(DType::I64, &[]);
    let boolean = cx.static_tensor_type(DType::BOOL, &[]);
    if cx.arg(1)? != number && cx.arg(1)? != cx.scalar_type(DType::I64) {
        return Err(cx.wrong_arg(1, "an i64"));
    }
    if cx.arg(2)? != boolean {
        return Err(cx.wrong_arg(2, "a boolean"));
    }
    let Some(carried) = tuple(cx.arg(3)?) else { return Err(cx.wrong_arg(3, "a tuple")) };
    let mut dims = DimBindings::default();
    let mut expected = vec![number];
    expected.extend(carried);
    let fits_param = |(&param, &given): (&Type, &Type)| fits(host, param, given, Some(&mut dims));
    if params.len() != expected.len() || !params.iter().zip(&expected).all(fits_param) {
        let ty = terms.type_text(cx.tuple_type(&expected));
        return Err(cx.wrong_arg(0, &format!("a function of {ty}")));
    }
    let given = Type(substitute(host, result.into(), &dims).0);
    let out = cx.attrs.ty("out")?;
    let (Some(given), Some(fields)) = (tuple(given), tuple(out)) else {
        return cx.bad_attr("out", terms.type_text(out), "it is a tuple");
    };
    expected[0] = boolean;
    if given.len() < expected.len() || given.len() != fields.len() + 1 {
        let count = fields.len() + 1;
        return Err(cx.wrong_arg(0, &format!("a function that gives a tuple of {count}")));
    }
    let (again, rows) = given.split_at(expected.len());
    for (at, (&before, &after)) in expected.iter().zip(again).enumerate() {
        if !fits(host, before, after, None) {
            let (before, after) = (terms.type_text(before), terms.type_text(after));
            return Err(cx.wrong_arg(
                0,
                &format!(
                    "a function whose result {at} is {before}, as before the trip, and not {after},"
                ),
            ));
        }
    }
    for (at, &field) in fields.iter().enumerate() {
        let is_right = match at.checked_sub(carried.len()) {
            None => fits(host, carried[at], field, None),
            Some(row) => is_of_rows(host, field, rows[row]),
        };
        if !is_right {
            let what = format!("its field {at} is not what the function gives");
            return cx.bad_attr("out", terms.type_text(out), what);
        }
    }
    Ok(out)
}

/// Whether `all` can be the type of several tensors of type `row`, one behind the other.
fn is_of_rows(host: &Cx, all: Type, row: Type) -> bool {
    let terms = host.terms();
    match (terms.tensor(all), terms.tensor(row)) {
        (Some((dtype, [_, rest @ ..])), Some((of_row, dims))) => {
            let rest = host.tensor_type(dtype, rest);
            dtype == of_row && fits(host, rest, host.tensor_type(of_row, dims), None)
        }
        // Nobody knows how many there are.
        (None, Some((of_row, _))) => {
            matches!(terms.ty(all), TypeView::Tensor { dtype, .. } if dtype == of_row)
        }
        _ => false,
    }
}

/// `bind_dims(%count) { ty = shape[k], most = shape[n] }`: from here on `k` is what the tensor holds. What it is at most need not
/// be said.
fn bind_dims(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let terms = cx.terms();
    let shape = |key| -> Result<_, OpError> {
        let ty = cx.attrs.ty(key)?;
        match terms.ty(ty) {
            TypeView::Shape(Some(dims)) => Ok((ty, dims)),
            _ => cx.bad_attr(key, terms.type_text(ty), "it is a shape of known rank"),
        }
    };
    let (ty, dims) = shape("ty")?;
    let is_symbol = |&dim: &Dim| matches!(terms.dim(dim), DimView::Symbol(_));
    let is_repeated = |at: usize| dims[..at].contains(&dims[at]);
    if !dims.iter().all(is_symbol) || (0..dims.len()).any(is_repeated) {
        return cx.bad_attr("ty", terms.type_text(ty), "its extents are different symbols");
    }
    if cx.attrs.given().get("most").is_some() {
        let (most, limits) = shape("most")?;
        if limits.len() != dims.len() {
            let expected = format!("it has {} extents", dims.len());
            return cx.bad_attr("most", terms.type_text(most), expected);
        }
    }
    let counted = cx.static_tensor_type(DType::I64, &[dims.len() as i64]);
    match cx.arg(0)? == counted {
        true => Ok(ty),
        false => Err(cx.wrong_arg(0, &terms.type_text(counted))),
    }
}

pub(super) fn make_closure(host: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
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
        if !fits(host, param, cx.arg(index + 1)?, Some(&mut dims)) {
            return Err(cx.wrong_arg(index + 1, &cx.terms().type_text(param)));
        }
    }
    let ty = cx.func_type(&params[..free], result);
    Ok(Type(substitute(host, ty.into(), &dims).0))
}

fn alloc_storage(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    match cx.args.len() {
        0 if cx.attrs.int("size")? < 0 => {
            return cx.bad_attr("size", cx.attrs.int("size")?, "it must not be negative");
        }
        0 => {}
        _ if cx.attrs.has("size") => {
            return cx.bad_attr("size", cx.attrs.int("size")?, "an argument says the size");
        }
        _ if cx.arg(0)? != cx.scalar_type(DType::I64) => {
            return Err(cx.wrong_arg(0, "an i64"));
        }
        _ => {}
    }
    let align = cx.attrs.int("align")?;
    if align < 1 || align.count_ones() != 1 {
        return cx.bad_attr("align", align, "it must be a power of two");
    }
    Ok(cx.object_type(STORAGE_CLASS))
}

fn alloc_tensor(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    if cx.arg(0)? != cx.object_type(STORAGE_CLASS) {
        return Err(cx.wrong_arg(0, "an object<storage>"));
    }
    let offset = cx.attrs.int("offset")?;
    match offset < 0 {
        true => cx.bad_attr("offset", offset, "it must not be negative"),
        false => cx.attrs.ty("ty"),
    }
}

fn view(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let ty = cx.attrs.ty("ty")?;
    match (bytes_of(cx, cx.arg(0)?), bytes_of(cx, ty)) {
        (Some(from), Some(to)) if from != to => {
            let text = cx.terms().type_text(ty);
            cx.bad_attr("ty", text, format!("it has {to} bytes, its tensor {from}"))
        }
        _ => Ok(ty),
    }
}

fn part(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let (ty, offset) = (cx.attrs.ty("ty")?, cx.attrs.int("offset")?);
    let Some(whole) = bytes_of(cx, cx.arg(0)?) else {
        return Err(cx.wrong_arg(0, "a tensor of known extents"));
    };
    let end = bytes_of(cx, ty).and_then(|bytes| bytes.checked_add(u64::try_from(offset).ok()?));
    match end {
        Some(end) if end <= whole => Ok(ty),
        _ => {
            let text = cx.terms().type_text(ty);
            cx.bad_attr("ty", text, format!("it does not lie in {whole} bytes from {offset} on"))
        }
    }
}

/// The bytes of a tensor of known extents.
fn bytes_of(cx: &InferCx<'_>, ty: Type) -> Option<u64> {
    let (dtype, shape) = cx.terms().static_tensor(ty)?;
    dtype.bytes(shape.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim.try_into().ok()?))?)
}
