//! The exponential of each element.
//!
//! ```ir
//! %y = exp(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Exponential function
#[op(name = "exp", pattern = "elementwise")]
pub struct Exp;

impl Operator for Exp {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &f64::exp)
    }
}

computes!(Exp, |x| x.call("exp"));

/// `g y`.
#[rule(gradient)]
fn gradient(_: &Exp, at: &mut Adjoint<'_>) -> Grads {
    Grads::of([at.mul(at.grad(), at.value())])
}

crate::onnx::same!(Exp is "Exp" since 6);
