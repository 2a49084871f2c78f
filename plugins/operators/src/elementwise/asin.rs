//! The angle in radians whose sine each element is.
//!
//! ```ir
//! %y = asin(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! Outside of -1 .. 1 it is no number.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// Arc sine
#[op(name = "asin", pattern = "elementwise")]
pub struct Asin;

impl Operator for Asin {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::asin)
    }
}

computes!(Asin, |x| x.call("asin"));

follows_precision!(Asin);

/// `g / sqrt(1 - x^2)`.
#[rule(gradient)]
fn gradient(_: &Asin, at: &mut Adjoint<'_>) -> Grads {
    let (x, g) = (at.arg(0), at.grad());
    let square = at.mul(x, x);
    let one = at.number_like(x, 1.0);
    let square = at.sub(one, square);
    let slope = at.apply("rsqrt", &[square]);
    Grads::of([at.mul(g, slope)])
}

crate::onnx::same!(Asin is "Asin" since 7);
