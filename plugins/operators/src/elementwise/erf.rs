//! The Gauss error function of each element.
//!
//! ```ir
//! %y = erf(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Gauss error function
#[op(name = "erf", pattern = "elementwise")]
pub struct Erf;

impl Operator for Erf {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &libm::erf)
    }
}

computes!(Erf, |x| x.call("erf"));

/// `g 2 / sqrt(pi) exp(-x^2)`.
#[rule(gradient)]
fn gradient(_: &Erf, at: &mut Adjoint<'_>) -> Grads {
    let square = at.mul(at.arg(0), at.arg(0));
    let exponent = at.neg(square);
    let bell = at.apply("exp", &[exponent]);
    let slope = at.scale(bell, std::f64::consts::FRAC_2_SQRT_PI);
    Grads::of([at.mul(at.grad(), slope)])
}

crate::onnx::same!(Erf is "Erf" since 9);
