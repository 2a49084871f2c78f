//! The same elements in another shape.
//!
//! ```ir
//! %y = reshape(%x, %s)    f32[n, 6], shape[n, 2, 3]  =>  f32[n, 2, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::same_elements::same_elements;
use super::simplify::{same_shape, source};
use crate::precision::follows_precision;

/// The same elements in the shape of the second argument
#[op(name = "reshape", args = 2, pattern = "injective")]
pub struct Reshape;

impl Operator for Reshape {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let shape = cx.shape(1)?;
        if let (Some(dims), Some(shape)) = (tensor.dims, shape) {
            let count =
                |dims: &[Dim]| dims.iter().fold(cx.dim(1), |count, &dim| cx.dim_mul(count, dim));
            if cx.is_different(count(dims), count(shape)) {
                return Err(cx.mismatch("the numbers of elements", dims, shape));
            }
        }
        Ok(cx.tensor_type(tensor.dtype, shape))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        same_elements(cx)
    }
}

/// Of a `reshape`, `expand_dims` or `squeeze` it is one reshape; where the shape comes back, none.
#[rule(simplify)]
fn simplify(_: &Reshape, at: &mut Site<'_>) -> Option<Expr> {
    same_shape(at).or_else(|| {
        // It keeps its shape argument, which may be known at run time alone.
        let source = source(at)?;
        let reshaped = at.apply("reshape", &[source, at.arg(1)]);
        at.same_type(reshaped)
    })
}

follows_precision!(Reshape);

/// `g` in the shape of `x`.
#[rule(gradient)]
fn gradient(_: &Reshape, at: &mut Adjoint<'_>) -> Grads {
    let g = at.reshape_like(at.grad(), at.arg(0));
    [Grad::Of(g), Grad::Zero].into()
}
