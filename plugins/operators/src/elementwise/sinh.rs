//! The hyperbolic sine of each element.
//!
//! ```ir
//! %y = sinh(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Hyperbolic sine
#[op(name = "sinh", pattern = "elementwise")]
pub struct Sinh;

impl Operator for Sinh {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::sinh)
    }
}

computes!(Sinh, |x| x.call("sinh"));

/// `g cosh x`.
#[rule(gradient)]
fn gradient(_: &Sinh, at: &mut Adjoint<'_>) -> Grads {
    let cosh = at.apply("cosh", &[at.arg(0)]);
    Grads::of([at.mul(at.grad(), cosh)])
}

crate::onnx::same!(Sinh is "Sinh" since 9);
