//! The logistic function of each element.
//!
//! ```ir
//! %y = sigmoid(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::number;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// 1 / (1 + exp(-x))
#[op(name = "sigmoid", pattern = "elementwise")]
pub struct Sigmoid;

impl Operator for Sigmoid {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &number::sigmoid)
    }
}

computes!(Sigmoid, |x| x.call("sigmoid"));

follows_precision!(Sigmoid);

/// `g y (1 - y)`.
#[rule(gradient)]
fn gradient(_: &Sigmoid, at: &mut Adjoint<'_>) -> Grads {
    let square = at.mul(at.value(), at.value());
    let slope = at.sub(at.value(), square);
    Grads::of([at.mul(at.grad(), slope)])
}

crate::onnx::same!(Sigmoid is "Sigmoid" since 6);
