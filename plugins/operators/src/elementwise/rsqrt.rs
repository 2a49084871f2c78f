//! The reciprocal square root of each element.
//!
//! ```ir
//! %y = rsqrt(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// 1 / sqrt(x)
#[op(name = "rsqrt", pattern = "elementwise")]
pub struct Rsqrt;

impl Operator for Rsqrt {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &|x| 1.0 / x.sqrt())
    }
}

computes!(Rsqrt, |x| x.call("rsqrt"));

/// `-g y^3 / 2`.
#[rule(gradient)]
fn gradient(_: &Rsqrt, at: &mut Adjoint<'_>) -> Grads {
    let square = at.mul(at.value(), at.value());
    let cube = at.mul(square, at.value());
    let slope = at.scale(cube, -0.5);
    Grads::of([at.mul(at.grad(), slope)])
}
