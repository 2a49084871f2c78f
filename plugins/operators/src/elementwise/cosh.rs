//! The hyperbolic cosine of each element.
//!
//! ```ir
//! %y = cosh(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Hyperbolic cosine
#[op(name = "cosh", pattern = "elementwise")]
pub struct Cosh;

impl Operator for Cosh {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::cosh)
    }
}

computes!(Cosh, |x| x.call("cosh"));

/// `g sinh x`.
#[rule(gradient)]
fn gradient(_: &Cosh, at: &mut Adjoint<'_>) -> Grads {
    let sinh = at.apply("sinh", &[at.arg(0)]);
    Grads::of([at.mul(at.grad(), sinh)])
}

crate::onnx::same!(Cosh is "Cosh" since 9);
