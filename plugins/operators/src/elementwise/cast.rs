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
use crate::storage::codes::{decoded_dtype, rounding, stored};
use tenon_plugin_api::ir::{BinaryOp, Build};

/// Conversion to another element type; floats are truncated towards zero
#[op(name = "cast", pattern = "elementwise")]
pub struct Cast {
    /// the new element type, such as "f16"
    dtype: DType,
    /// whether a float that is too large for a float of a byte or less becomes the largest one; infinity, or not a number, where it
    /// does not
    #[attr(default = true)]
    saturate: bool,
    /// which neighbour a number between two of a float of a byte or less becomes
    #[attr(default = "nearest", one_of = ["nearest", "up", "down"])]
    rounding: String,
}

impl Operator for Cast {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(cx.tensor_type(self.dtype, cx.tensor(0)?.dims))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let x = cx.arg(0)?;
        if x.dtype() == self.dtype || !self.dtype.is_storage() {
            return Ok(vec![convert(x, self.dtype)?]);
        }
        let x = match x.dtype().is_storage() {
            true => convert(x, decoded_dtype(x.dtype()))?,
            false => x.clone(),
        };
        Ok(vec![stored(&x, self.dtype, self.saturate, rounding(&self.rounding))?])
    }
}

/// To bool it asks whether the element differs from zero.
#[rule(compute)]
fn program(op: &Cast, program: &mut Program) -> Result<()> {
    let given = program.input(0).dtype();
    if let Some(dtype) = [given, op.dtype].into_iter().find(|dtype| dtype.is_storage()) {
        return Err(OpError::Unsupported(format!(
            "{dtype} is stored and not computed with; relax.SimplifyInference makes `storage.decode` and `storage.encode` of its conversions"
        )));
    }
    elementwise(program, |args| match op.dtype.is_bool() && !args[0].dtype().is_bool() {
        true => args[0].binary(BinaryOp::Ne, 0),
        false => args[0].cast(op.dtype),
    })
}

/// From and to a type that is only stored, it is `storage.decode` of its bytes, and bytes of `storage.encode`.
#[rule(decompose.inference)]
fn decompose(op: &Cast, at: &mut Site<'_>) -> Option<Expr> {
    let mut x = at.arg(0);
    let (from, dims) = at.tensor(x)?;
    if from == op.dtype || !(from.is_storage() || op.dtype.is_storage()) {
        return None;
    }
    let shape = at.shape(&dims);
    if from.is_storage() {
        x = at.apply("storage.bytes", &[x]);
        x = at.apply_with("storage.decode", &[x, shape], &[("dtype", from.to_string().into())]);
    }
    let dtype: AttrValue = op.dtype.to_string().into();
    if !op.dtype.is_storage() {
        return Some(match decoded_dtype(from) == op.dtype {
            true => x,
            false => at.apply_with("cast", &[x], &[("dtype", dtype)]),
        });
    }
    let attrs = [
        ("dtype", dtype),
        ("saturate", op.saturate.into()),
        ("rounding", op.rounding.as_str().into()),
    ];
    x = at.apply_with("storage.encode", &[x], &attrs);
    Some(at.apply_with("storage.from_bytes", &[x, shape], &attrs[..1]))
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
    Ok(vec![converted(node, x, dtype)?])
}

/// `CastLike`: to the element type of the second input.
#[rule(import.onnx, key = "CastLike", since = 15)]
fn import_like(node: &mut Node<'_>) -> Outputs {
    let (x, like) = (node.input(0)?, node.input(1)?);
    let dtype = node.dtype(like)?;
    Ok(vec![converted(node, x, dtype)?])
}

/// `x` in another element type: what is stored alone is made as the attributes of the node say. Of a float that an integer below a
/// byte has no room for, the lowest bits stay.
pub(crate) fn converted(node: &mut Node<'_>, x: Value, dtype: DType) -> Result<Value, Problem> {
    let saturate = node.flag("saturate", true)?;
    let rounding = node.text("round_mode", "up")?;
    let from = node.dtype(x)?;
    if from == dtype || !dtype.is_storage() {
        return cast_to(node, x, dtype);
    }
    if !dtype.is_float() {
        let whole = if from.is_float() { cast_to(node, x, DType::I32)? } else { x };
        return cast_to(node, whole, dtype);
    }
    let rounding = match dtype {
        DType::F8E8M0 => rounding,
        _ => "nearest".to_owned(),
    };
    let attrs = [
        ("dtype", dtype.to_string().into()),
        ("saturate", saturate.into()),
        ("rounding", rounding.as_str().into()),
    ];
    node.call("cast", &[x], &attrs)
}

/// The element type that a `Cast` converts to.
fn target(node: &Node<'_>) -> Result<DType, Problem> {
    match node.element_type("to")? {
        Some(dtype) => Ok(dtype),
        None => invalid("its attribute `to` is missing"),
    }
}

/// `Cast` of dimensions.
#[rule(import.onnx, key = "Cast", since = 6, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        // Both are about floats of a byte or less.
        node.ignore("saturate");
        node.ignore("round_mode");
        let ([x], dtype) = (inputs, target(node)?) else { return Ok(None) };
        // A cast to bool is a comparison, and a narrower type may not hold the number.
        let is_number = Known::has_elements_of(dtype) && !dtype.is_bool();
        let known = Known { dtype, ..x.clone() };
        Ok(Some(known).filter(|known| is_number && fold::fits(node, known)))
    })
}
