//! The tangent of each element, an angle in radians.
//!
//! ```ir
//! %y = tan(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Tangent
#[op(name = "tan", pattern = "elementwise")]
pub struct Tan;

impl Operator for Tan {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::tan)
    }
}

computes!(Tan, |x| x.call("tan"));

/// `g (1 + y^2)`.
#[rule(gradient)]
fn gradient(_: &Tan, at: &mut Adjoint<'_>) -> Grads {
    let square = at.mul(at.value(), at.value());
    let slope = at.plus(square, 1.0);
    Grads::of([at.mul(at.grad(), slope)])
}

crate::onnx::same!(Tan is "Tan" since 7);
