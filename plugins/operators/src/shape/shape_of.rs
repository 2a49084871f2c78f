//! The shape of a tensor.
//!
//! ```ir
//! %y = shape_of(%x)    f32[n, 3]  =>  shape[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

/// The shape of a tensor
#[op(name = "shape_of")]
pub struct ShapeOf;

impl Operator for ShapeOf {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(cx.shape_type(cx.tensor(0)?.dims))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let shape: Vec<i64> = cx.arg(0)?.shape().iter().map(|&dim| dim as i64).collect();
        Ok(vec![Tensor::from_vec(vec![shape.len()], shape)])
    }
}

/// A shape comes with its tensor.
#[rule(view)]
fn view(_: &ShapeOf, at: &mut Site<'_>) -> Expr {
    at.call.expr
}

/// Nothing: a shape has no derivative.
#[rule(gradient)]
fn gradient(_: &ShapeOf, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}
