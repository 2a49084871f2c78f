//! Conversion to another element type.
//!
//! ```ir
//! %y = cast(%x) { dtype = "i8" }    f32[n, 3]  =>  i8[n, 3]
//! ```
//!
//! Floats are truncated towards zero and saturate; integers are taken modulo the size of the type.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::kernel::convert::convert;
use crate::onnx::fold::{self, Folded};
use crate::onnx::steps::cast_to;
use crate::program::elementwise::elementwise;
use tenon_plugin_api::ir::BinaryOp;

/// Conversion to another element type; floats are truncated towards zero
#[op(name = "cast", pattern = "elementwise")]
pub struct Cast {
    /// the new element type, such as "f16"
    dtype: DType,
}

impl Operator for Cast {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(cx.tensor_type(self.dtype, cx.tensor(0)?.dims))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![convert(cx.arg(0)?, self.dtype)?])
    }
}

/// To bool it asks whether the element differs from zero.
#[rule(compute)]
fn program(op: &Cast, program: &mut Program) -> Result<()> {
    elementwise(program, |args| match op.dtype.is_bool() && !args[0].dtype().is_bool() {
        true => args[0].binary(BinaryOp::Ne, 0),
        false => args[0].cast(op.dtype),
    })
}

/// `cast(x) => x` to the same type, and `cast(cast(x)) => cast(x)` where the first one loses nothing.
#[rule(simplify)]
fn simplify(_: &Cast, at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    if at.same_type(x).is_some() {
        return Some(x);
    }
    let inner = at.call_of(x, "cast")?;
    let (from, _) = at.tensor(inner.args[0])?;
    let (through, _) = at.tensor(x)?;
    if !is_lossless(from, through) {
        return None;
    }
    at.same_type(inner.args[0]).or_else(|| {
        let cast = at.call_op("cast", &inner.args, at.call.attrs);
        at.same_type(cast)
    })
}

/// Whether every element of `from` is one of `to`.
fn is_lossless(from: DType, to: DType) -> bool {
    let is_wider = from.bits() < to.bits();
    match (from, to) {
        (DType::F16 | DType::BF16, _) | (DType::F32, DType::F64) => to.is_float() && is_wider,
        _ if from.is_bool() => to.is_int() || to.is_float(),
        _ if from.is_int() && to.is_int() => is_wider && (to.is_signed() || !from.is_signed()),
        _ => false,
    }
}

/// `g` in the type of `x`; nothing where that is no float.
#[rule(gradient)]
fn gradient(_: &Cast, at: &mut Adjoint<'_>) -> Grads {
    match at.dtype(at.arg(0)) {
        Some(dtype) if dtype.is_float() => Grads::of([at.in_dtype(at.grad(), dtype)]),
        _ => at.nothing(),
    }
}

/// `Cast` to the element type in an attribute.
#[rule(import.onnx, key = "Cast", since = 6)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = target(node)?;
    Ok(vec![cast_to(node, x, dtype)?])
}

/// `CastLike`: to the element type of the second input.
#[rule(import.onnx, key = "CastLike", since = 15)]
fn import_like(node: &mut Node<'_>) -> Outputs {
    let (x, like) = (node.input(0)?, node.input(1)?);
    node.ignore("saturate");
    node.ignore("round_mode");
    let dtype = node.dtype(like)?;
    Ok(vec![cast_to(node, x, dtype)?])
}

/// The element type that a `Cast` converts to.
fn target(node: &Node<'_>) -> Result<DType, Problem> {
    // Both are about 8-bit floats alone.
    node.ignore("saturate");
    node.ignore("round_mode");
    match node.element_type("to")? {
        Some(dtype) => Ok(dtype),
        None => invalid("its attribute `to` is missing"),
    }
}

/// `Cast` of dimensions.
#[rule(import.onnx, key = "Cast", since = 6, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let ([x], dtype) = (inputs, target(node)?) else { return Ok(None) };
        // A cast to bool is a comparison, and a narrower type may not hold the number.
        let is_number = Known::has_elements_of(dtype) && !dtype.is_bool();
        let known = Known { dtype, ..x.clone() };
        Ok(Some(known).filter(|known| is_number && fold::fits(node, known)))
    })
}
