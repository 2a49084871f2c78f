//! What training would drop, which inference keeps.
//!
//! ```ir
//! %y = nn.dropout(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::number;
use crate::precision::follows_precision;

/// The identity: nothing is dropped in inference
#[op(name = "nn.dropout", pattern = "elementwise")]
pub struct Dropout {
    /// what training would drop
    #[attr(default = 0.5)]
    #[allow(dead_code, reason = "only training would read it")]
    rate: f64,
}

impl Operator for Dropout {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

follows_precision!(Dropout);

/// `g`.
#[rule(gradient)]
fn gradient(_: &Dropout, at: &mut Adjoint<'_>) -> Grads {
    Grads::of([at.grad()])
}

/// The data itself.
#[rule(decompose.inference)]
fn decompose(_: &Dropout, at: &mut Site<'_>) -> Expr {
    at.arg(0)
}
