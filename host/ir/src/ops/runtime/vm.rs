//! Operators of a module that is ready to be executed with shapes that are known at run time: what a passage of
//! memory, a closure or a shape is when its sizes are values. `docs/vm.md` says what the form means.
//!
//! They are evaluated by the evaluator, which is the first executor of that form.

use tenon_plugin_api::op::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpEffect, OpError, OpPattern, OpSchema, attr,
};

use super::RuntimeOp;
use super::compiler::make_closure;
use crate::infer::instantiate;
use crate::op_names::STORAGE_CLASS;
use crate::op_names::vm::*;
use crate::{Context, Cx, DType, Term, TermView, Terms, Type, TypeView};

macro_rules! runtime {
    ($($name:ident $effect:ident $summary:literal $args:expr, $infer:expr, $attrs:expr;)*) => {
        /// In the order in which they are documented.
        pub(super) static OPERATORS: &[RuntimeOp] = &[$(RuntimeOp {
            schema: OpSchema {
                name: $name,
                summary: $summary,
                args: $args,
                attrs: $attrs,
                effect: OpEffect::$effect,
                pattern: OpPattern::Opaque,
                ..OpSchema::ELEMENTWISE
            },
            infer: $infer,
        }),*];
    };
}

runtime! {
    ALLOC_STORAGE Makes "Memory of as many bytes as the argument says" Arity::exactly(1), alloc_storage,
        &[attr("align", AttrKind::Int, AttrDefault::Int(64), "alignment in bytes, a power of two")];
    ALLOC_TENSOR Makes "A tensor in a storage, at an offset in bytes, of a shape" Arity::exactly(3),
        alloc_tensor, &[DTYPE];
    VIEW Makes "The memory of a tensor as a tensor of a shape of the same size" Arity::exactly(2), view,
        &[DTYPE];
    KILL_OBJECT Any "Says that a tensor or storage is not used any more" Arity::exactly(1), nothing, &[];
    MAKE_CLOSURE Makes "A function of the module with values for its last parameters" Arity::at_least(1),
        make_closure, &[];
    INVOKE_CLOSURE Any "Calls its first argument with the others" Arity::at_least(1), invoke_closure, &[];
    ALLOC_SHAPE_HEAP Makes "Room for dimensions, which are not set" Arity::exactly(0), alloc_shape_heap,
        &[attr("slots", AttrKind::Int, AttrDefault::Required, "how many dimensions")];
    MATCH_SHAPE Any "Compares a tensor or shape with a type, and puts dimensions on the heap"
        Arity::between(1, 2), match_shape, &[
            attr("ty", AttrKind::Type, AttrDefault::Required,
                "the type; its symbols are for messages, the codes say what is done with dimensions"),
            attr("codes", AttrKind::Any, AttrDefault::Required,
                "for each dimension `assert_imm`, `assert_load`, `store` or `no_op`"),
            OPERANDS,
            attr("what", AttrKind::Str, AttrDefault::Required, "the value, for messages"),
        ];
    MAKE_SHAPE Makes "A shape of integers and of dimensions on the heap" Arity::exactly(1), make_shape, &[
        attr("ty", AttrKind::Type, AttrDefault::Required, "its type"),
        attr("codes", AttrKind::Any, AttrDefault::Required, "for each dimension `imm` or `load`"),
        OPERANDS,
    ];
    LOAD_DIM Makes "A dimension on the heap" Arity::exactly(1), load_dim,
        &[attr("slot", AttrKind::Int, AttrDefault::Required, "its place")];
    SHAPE_OF None "The shape of a tensor" Arity::exactly(1), shape_of, &[];
    SHAPE_TO_TENSOR None "A shape as a tensor of i64" Arity::exactly(1), shape_to_tensor, &[];
    TENSOR_TO_SHAPE None "A tensor of i64 as a shape" Arity::exactly(1), tensor_to_shape, &[];
}

const DTYPE: AttrDef =
    attr("dtype", AttrKind::Str, AttrDefault::Required, "the type of each element");
const OPERANDS: AttrDef = attr(
    "operands",
    AttrKind::Ints,
    AttrDefault::Required,
    "for each code the integer or the place on the heap that it is about",
);

fn shape_of(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    Ok(cx.shape_type(cx.tensor(0)?.dims))
}

fn shape_to_tensor(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    match cx.shape(0)? {
        Some(dims) => Ok(cx.static_tensor_type(DType::I64, &[dims.len() as i64])),
        None => Err(cx.wrong_arg(0, "a shape of known rank")),
    }
}

fn tensor_to_shape(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    match cx.terms().ty(cx.arg(0)?) {
        TypeView::Tensor { dtype: DType::I64, dims: None | Some([_]) } => Ok(cx.shape_type(None)),
        _ => Err(cx.wrong_arg(0, "a tensor of i64 of one dimension")),
    }
}

fn nothing(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    Ok(cx.tuple_type(&[]))
}

fn alloc_storage(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    dimension(cx, 0)?;
    Ok(cx.object_type(STORAGE_CLASS))
}

fn alloc_tensor(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    if cx.arg(0)? != cx.object_type(STORAGE_CLASS) {
        return Err(cx.wrong_arg(0, "an object<storage>"));
    }
    dimension(cx, 1)?;
    Ok(cx.tensor_type(cx.attrs.dtype("dtype")?, cx.shape(2)?))
}

fn view(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.tensor(0)?;
    Ok(cx.tensor_type(cx.attrs.dtype("dtype")?, cx.shape(1)?))
}

fn invoke_closure(host: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    instantiate(host, cx.arg(0)?, &cx.args[1..])
        .map_err(|problem| OpError::Unsupported(problem.to_string()))
}

fn alloc_shape_heap(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    let slots = cx.attrs.int("slots")?;
    match slots > 0 {
        true => Ok(cx.static_tensor_type(DType::I64, &[slots])),
        false => cx.bad_attr("slots", slots, "it must be positive"),
    }
}

fn match_shape(host: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.arg(0)?;
    let needs_heap = needs_heap(cx, |code| {
        Some(match code {
            "assert_imm" | "no_op" => false,
            "assert_load" | "store" => true,
            _ => return None,
        })
    })?;
    if needs_heap {
        heap(cx, 1)?;
    }
    nothing(host, cx)
}

fn make_shape(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    heap(cx, 0)?;
    needs_heap(cx, |code| match code {
        "imm" => Some(false),
        "load" => Some(true),
        _ => None,
    })?;
    cx.attrs.ty("ty")
}

fn load_dim(_: &Cx, cx: &InferCx<'_>) -> Result<Type, OpError> {
    heap(cx, 0)?;
    Ok(cx.scalar_type(DType::I64))
}

/// That an argument is a dimension.
fn dimension(cx: &InferCx<'_>, index: usize) -> Result<(), OpError> {
    match cx.arg(index)? == cx.scalar_type(DType::I64) {
        true => Ok(()),
        false => Err(cx.wrong_arg(index, "an i64")),
    }
}

/// That an argument is a heap.
fn heap(cx: &InferCx<'_>, index: usize) -> Result<(), OpError> {
    match cx.terms().static_tensor(cx.arg(index)?) {
        Some((DType::I64, shape)) if shape.len() == 1 => Ok(()),
        _ => Err(cx.wrong_arg(index, "a heap of dimensions, an i64[N]")),
    }
}

/// Whether one of the codes is about the heap, which `of_code` tells unless there is none of its name. There is a code
/// for each dimension of the type, and an operand for each code.
fn needs_heap(cx: &InferCx<'_>, of_code: impl Fn(&str) -> Option<bool>) -> Result<bool, OpError> {
    let ty = cx.attrs.ty("ty")?;
    let rank = match cx.terms().ty(ty) {
        TypeView::Tensor { dims, .. } | TypeView::Shape(dims) => dims.map_or(0, <[_]>::len),
        _ => {
            let ty = cx.terms().type_text(ty);
            return cx.bad_attr("ty", ty, "it is no type of a tensor or shape");
        }
    };
    let codes = cx.attrs.given().term("codes").unwrap_or_default();
    let codes = codes_of(cx.terms(), codes).unwrap_or_default();
    let needed: Option<Vec<bool>> = codes.iter().map(|code| of_code(code)).collect();
    let operands = cx.attrs.ints("operands")?;
    match needed {
        None => cx.bad_attr("codes", codes, "one of them is no code"),
        Some(needed) if needed.len() != rank => {
            cx.bad_attr("codes", codes, format!("the type has {rank} dimensions"))
        }
        Some(needed) if needed.len() != operands.len() => {
            cx.bad_attr("operands", operands, format!("there are {} codes", needed.len()))
        }
        Some(needed) => Ok(needed.contains(&true)),
    }
}

/// The strings of a list.
fn codes_of(terms: Terms<'_>, list: Term) -> Option<Vec<&str>> {
    let TermView::List(items) = terms.view(list) else { return None };
    let code = |&item: &Term| match terms.view(item) {
        TermView::Str(code) => Some(code),
        _ => None,
    };
    items.iter().map(code).collect()
}
