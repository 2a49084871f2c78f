//! A shape as a tensor.
//!
//! ```ir
//! %y = shape_to_tensor(%s)    shape[n, 3]  =>  i64[2]
//! ```
//!
//! A shape is evaluated as a tensor of its extents, so it is the argument itself.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

/// A shape as a tensor of i64
#[op(name = "shape_to_tensor")]
pub struct ShapeToTensor;

impl Operator for ShapeToTensor {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        match cx.shape(0)? {
            Some(dims) => Ok(cx.static_tensor_type(DType::I64, &[dims.len() as i64])),
            None => Err(cx.wrong_arg(0, "a shape of known rank")),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

/// A shape is a tensor of its extents.
#[rule(view)]
fn view(_: &ShapeToTensor, at: &mut Site<'_>) -> Expr {
    at.call.expr
}

/// Integers that are only known as dimensions, as a tensor that is computed at run time.
#[rule(import.onnx, domain = "tenon", key = "Dimensions")]
fn import(node: &mut Node<'_>) -> Outputs {
    let Some(known) = node.elements(node.input(0)?) else { return node.not_constant(0) };
    let shape = node.shape(&known.elements)?;
    let mut y = node.apply("shape_to_tensor", &[shape])?;
    if known.shape.len() != 1 {
        let dims: Vec<Dim> = known.shape.iter().map(|&dim| node.cx().dim(dim as i64)).collect();
        let shape = node.shape(&dims)?;
        y = node.apply("reshape", &[y, shape])?;
    }
    Ok(vec![cast_to(node, y, known.dtype)?])
}
