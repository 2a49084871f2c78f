//! The cosine of each element, an angle in radians.
//!
//! ```ir
//! %y = cos(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Cosine
#[op(name = "cos", pattern = "elementwise")]
pub struct Cos;

impl Operator for Cos {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::cos)
    }
}

computes!(Cos, |x| x.call("cos"));

/// `-g sin x`.
#[rule(gradient)]
fn gradient(_: &Cos, at: &mut Adjoint<'_>) -> Grads {
    let sin = at.apply("sin", &[at.arg(0)]);
    let product = at.mul(at.grad(), sin);
    Grads::of([at.neg(product)])
}

crate::onnx::same!(Cos is "Cos" since 7);
