//! A tensor as a shape.
//!
//! ```ir
//! %y = tensor_to_shape(%x)    i64[2]  =>  shape[*]
//! ```
//!
//! A shape is evaluated as a tensor of its extents, so it is the argument itself.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

/// A tensor of i64 as a shape
#[op(name = "tensor_to_shape")]
pub struct TensorToShape;

impl Operator for TensorToShape {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        match cx.terms().ty(cx.arg(0)?) {
            TypeView::Tensor { dtype: DType::I64, dims: None | Some([_]) } => {
                Ok(cx.shape_type(None))
            }
            _ => Err(cx.wrong_arg(0, "a tensor of i64 of one dimension")),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

/// A shape is a tensor of its extents.
#[rule(view)]
fn view(_: &TensorToShape, at: &mut Site<'_>) -> Expr {
    at.call.expr
}
