//! The sine of each element, an angle in radians.
//!
//! ```ir
//! %y = sin(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Sine
#[op(name = "sin", pattern = "elementwise")]
pub struct Sin;

impl Operator for Sin {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::sin)
    }
}

computes!(Sin, |x| x.call("sin"));

/// `g cos x`.
#[rule(gradient)]
fn gradient(_: &Sin, at: &mut Adjoint<'_>) -> Grads {
    let cos = at.apply("cos", &[at.arg(0)]);
    Grads::of([at.mul(at.grad(), cos)])
}

crate::onnx::same!(Sin is "Sin" since 7);
