//! The angle in radians whose tangent each element is.
//!
//! ```ir
//! %y = atan(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// Arc tangent
#[op(name = "atan", pattern = "elementwise")]
pub struct Atan;

impl Operator for Atan {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::atan)
    }
}

computes!(Atan, |x| x.call("atan"));

follows_precision!(Atan);

/// `g / (1 + x^2)`.
#[rule(gradient)]
fn gradient(_: &Atan, at: &mut Adjoint<'_>) -> Grads {
    let (x, g) = (at.arg(0), at.grad());
    let square = at.mul(x, x);
    let square = at.plus(square, 1.0);
    Grads::of([at.div(g, square)])
}

crate::onnx::same!(Atan is "Atan" since 7);
