//! The number whose hyperbolic tangent each element is.
//!
//! ```ir
//! %y = atanh(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! Outside of -1 .. 1 it is no number, and at the ends infinite.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Area hyperbolic tangent
#[op(name = "atanh", pattern = "elementwise")]
pub struct Atanh;

impl Operator for Atanh {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::atanh)
    }
}

computes!(Atanh, |x| x.call("atanh"));

/// `g / (1 - x^2)`.
#[rule(gradient)]
fn gradient(_: &Atanh, at: &mut Adjoint<'_>) -> Grads {
    let (x, g) = (at.arg(0), at.grad());
    let square = at.mul(x, x);
    let one = at.number_like(x, 1.0);
    let square = at.sub(one, square);
    Grads::of([at.div(g, square)])
}

crate::onnx::same!(Atanh is "Atanh" since 9);
