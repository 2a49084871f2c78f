//! The sigmoid linear unit (Elfwing, Uchibe and Doya 2017).
//!
//! ```ir
//! %y = nn.silu(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::number;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// x * sigmoid(x)
#[op(name = "nn.silu", pattern = "elementwise")]
pub struct Silu;

impl Operator for Silu {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &|x| x * number::sigmoid(x))
    }
}

computes!(Silu, |x| x * x.call("sigmoid"));

follows_precision!(Silu);

/// `g (s + y (1 - s))`, where `s` is `sigmoid(x)`.
#[rule(gradient)]
fn gradient(_: &Silu, at: &mut Adjoint<'_>) -> Grads {
    let sigmoid = at.apply("sigmoid", &[at.arg(0)]);
    let product = at.mul(at.value(), sigmoid);
    let rest = at.sub(at.value(), product);
    let slope = at.add(sigmoid, rest);
    Grads::of([at.mul(at.grad(), slope)])
}
