//! The hyperbolic tangent of each element.
//!
//! ```ir
//! %y = tanh(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// Hyperbolic tangent
#[op(name = "tanh", pattern = "elementwise")]
pub struct Tanh;

impl Operator for Tanh {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &f64::tanh)
    }
}

computes!(Tanh, |x| x.call("tanh"));

follows_precision!(Tanh);

/// `g (1 - y^2)`.
#[rule(gradient)]
fn gradient(_: &Tanh, at: &mut Adjoint<'_>) -> Grads {
    let square = at.mul(at.value(), at.value());
    let one = at.number_like(square, 1.0);
    let slope = at.sub(one, square);
    Grads::of([at.mul(at.grad(), slope)])
}

crate::onnx::same!(Tanh is "Tanh" since 6);
