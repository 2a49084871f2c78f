//! The square root of each element.
//!
//! ```ir
//! %y = sqrt(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Square root
#[op(name = "sqrt", pattern = "elementwise")]
pub struct Sqrt;

impl Operator for Sqrt {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &f64::sqrt)
    }
}

computes!(Sqrt, |x| x.call("sqrt"));

/// `g / (2 y)`.
#[rule(gradient)]
fn gradient(_: &Sqrt, at: &mut Adjoint<'_>) -> Grads {
    let half = at.scale(at.grad(), 0.5);
    Grads::of([at.div(half, at.value())])
}

crate::onnx::same!(Sqrt is "Sqrt" since 6);
