//! Operators of a module that is ready to be executed with shapes that are known at run time: what a passage of
//! memory, a closure or a shape is when its sizes are values. `docs/vm.md` says what the form means.
//!
//! They are evaluated by the evaluator, which is the first executor of that form.

use crate::infer::instantiate;
use crate::ir::{Context, DType, Term, TermView, Terms, Type, TypeView};
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpEffect, OpError, OpPattern, attr,
};

use super::compiler::{STORAGE_CLASS, make_closure};

/// Name of the operator that makes a storage of a size that is a value.
pub const ALLOC_STORAGE: &str = "vm.alloc_storage";
/// Name of the operator that makes a tensor in a storage, of a shape that is a value.
pub const ALLOC_TENSOR: &str = "vm.alloc_tensor";
/// Name of the operator that looks at a tensor as one of another shape, which is a value.
pub const VIEW: &str = "vm.view";
/// Name of the operator that ends the life of a tensor or storage.
pub const KILL_OBJECT: &str = "vm.kill_object";
/// Name of the operator that makes a closure.
pub const MAKE_CLOSURE: &str = "vm.make_closure";
/// Name of the call of a closure.
pub const INVOKE_CLOSURE: &str = "vm.invoke_closure";
/// Name of the operator that makes the heap of a function's dimensions.
pub const ALLOC_SHAPE_HEAP: &str = "vm.alloc_shape_heap";
/// Name of the operator that compares a shape with what was declared, and reads dimensions off it.
pub const MATCH_SHAPE: &str = "vm.match_shape";
/// Name of the operator that makes a shape of integers and dimensions on the heap.
pub const MAKE_SHAPE: &str = "vm.make_shape";
/// Name of the operator that reads a dimension.
pub const LOAD_DIM: &str = "vm.load_dim";

/// The attribute of a graph function that matches the shapes of its parameters itself.
pub const MATCHES_PARAMETERS: &str = "matches_parameters";

macro_rules! runtime {
    ($($name:ident $effect:ident $summary:literal $args:expr, $infer:expr, $attrs:expr;)*) => {$(
        inventory::submit! { OpDef {
            name: $name,
            summary: $summary,
            args: $args,
            attrs: $attrs,
            effect: OpEffect::$effect,
            pattern: OpPattern::Opaque,
            infer: $infer,
            ..OpDef::ELEMENTWISE
        } }
    )*};
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
}

const DTYPE: AttrDef =
    attr("dtype", AttrKind::Str, AttrDefault::Required, "the type of each element");
const OPERANDS: AttrDef = attr(
    "operands",
    AttrKind::Ints,
    AttrDefault::Required,
    "for each code the integer or the place on the heap that it is about",
);

fn nothing(cx: &InferCx<'_>) -> Result<Type, OpError> {
    Ok(cx.cx.tuple_type(&[]))
}

fn alloc_storage(cx: &InferCx<'_>) -> Result<Type, OpError> {
    dimension(cx, 0)?;
    Ok(cx.cx.object_type(STORAGE_CLASS))
}

fn alloc_tensor(cx: &InferCx<'_>) -> Result<Type, OpError> {
    if cx.arg(0)? != cx.cx.object_type(STORAGE_CLASS) {
        return Err(cx.wrong_arg(0, "an object<storage>"));
    }
    dimension(cx, 1)?;
    Ok(cx.tensor_type(cx.attrs.dtype("dtype")?, cx.shape(2)?))
}

fn view(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.tensor(0)?;
    Ok(cx.tensor_type(cx.attrs.dtype("dtype")?, cx.shape(1)?))
}

fn invoke_closure(cx: &InferCx<'_>) -> Result<Type, OpError> {
    instantiate(cx.cx, cx.arg(0)?, &cx.args[1..])
        .map_err(|problem| OpError::Unsupported(problem.to_string()))
}

fn alloc_shape_heap(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let slots = cx.attrs.int("slots")?;
    match slots > 0 {
        true => Ok(cx.cx.static_tensor_type(DType::I64, &[slots])),
        false => cx.bad_attr("slots", slots, "it must be positive"),
    }
}

fn match_shape(cx: &InferCx<'_>) -> Result<Type, OpError> {
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
    nothing(cx)
}

fn make_shape(cx: &InferCx<'_>) -> Result<Type, OpError> {
    heap(cx, 0)?;
    needs_heap(cx, |code| match code {
        "imm" => Some(false),
        "load" => Some(true),
        _ => None,
    })?;
    cx.attrs.ty("ty")
}

fn load_dim(cx: &InferCx<'_>) -> Result<Type, OpError> {
    heap(cx, 0)?;
    Ok(cx.cx.scalar_type(DType::I64))
}

/// That an argument is a dimension.
fn dimension(cx: &InferCx<'_>, index: usize) -> Result<(), OpError> {
    match cx.arg(index)? == cx.cx.scalar_type(DType::I64) {
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
pub(crate) fn codes_of(terms: Terms<'_>, list: Term) -> Option<Vec<&str>> {
    let TermView::List(items) = terms.view(list) else { return None };
    let code = |&item: &Term| match terms.view(item) {
        TermView::Str(code) => Some(code),
        _ => None,
    };
    items.iter().map(code).collect()
}
