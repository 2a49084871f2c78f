//! The number whose hyperbolic sine each element is.
//!
//! ```ir
//! %y = asinh(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// Area hyperbolic sine
#[op(name = "asinh", pattern = "elementwise")]
pub struct Asinh;

impl Operator for Asinh {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::asinh)
    }
}

computes!(Asinh, |x| x.call("asinh"));

follows_precision!(Asinh);

/// `g / sqrt(x^2 + 1)`.
#[rule(gradient)]
fn gradient(_: &Asinh, at: &mut Adjoint<'_>) -> Grads {
    let (x, g) = (at.arg(0), at.grad());
    let square = at.mul(x, x);
    let square = at.plus(square, 1.0);
    let slope = at.apply("rsqrt", &[square]);
    Grads::of([at.mul(g, slope)])
}

crate::onnx::same!(Asinh is "Asinh" since 9);
