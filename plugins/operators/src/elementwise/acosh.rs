//! The number whose hyperbolic cosine each element is.
//!
//! ```ir
//! %y = acosh(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! Below one it is no number.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// Area hyperbolic cosine
#[op(name = "acosh", pattern = "elementwise")]
pub struct Acosh;

impl Operator for Acosh {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &|x| if x < 1.0 { f64::NAN } else { libm::acosh(x) })
    }
}

computes!(Acosh, |x| x.call("acosh"));

follows_precision!(Acosh);

/// `g / sqrt(x^2 - 1)`.
#[rule(gradient)]
fn gradient(_: &Acosh, at: &mut Adjoint<'_>) -> Grads {
    let (x, g) = (at.arg(0), at.grad());
    let square = at.mul(x, x);
    let square = at.plus(square, -1.0);
    let slope = at.apply("rsqrt", &[square]);
    Grads::of([at.mul(g, slope)])
}

crate::onnx::same!(Acosh is "Acosh" since 9);
