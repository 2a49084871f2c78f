//! A rectified linear unit that lets a part of what is below zero through.
//!
//! ```ir
//! %y = nn.leaky_relu(%x) { alpha = 0.1 }    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::elementwise;

/// x where x > 0, alpha * x elsewhere
#[op(name = "nn.leaky_relu", pattern = "elementwise")]
pub struct LeakyRelu {
    /// slope of the negative side
    #[attr(default = 0.01)]
    alpha: f64,
}

impl Operator for LeakyRelu {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &|x| if x > 0.0 { x } else { self.alpha * x })
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &LeakyRelu, program: &mut Program) -> Result<()> {
    elementwise(program, |args| args[0].gt(0).select(args[0], args[0] * op.alpha))
}

follows_precision!(LeakyRelu);

/// `g` where `x > 0`, `alpha g` elsewhere.
#[rule(gradient)]
fn gradient(op: &LeakyRelu, at: &mut Adjoint<'_>) -> Grads {
    let (x, g) = (at.arg(0), at.grad());
    let zero = at.number_like(x, 0.0);
    let is_positive = at.apply("greater", &[x, zero]);
    let small = at.scale(g, op.alpha);
    Grads::of([at.apply("where", &[is_positive, g, small])])
}

/// `LeakyRelu`.
#[rule(import.onnx, key = "LeakyRelu", since = 6)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let alpha = node.float_or("alpha", 0.01)?;
    Ok(vec![node.call("nn.leaky_relu", &[x], &[("alpha", alpha.into())])?])
}
