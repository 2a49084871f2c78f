//! The Gaussian error linear unit (Hendrycks and Gimpel 2016).
//!
//! ```ir
//! %y = nn.gelu(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! By the complement, so that nothing cancels where x is far below zero.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, FRAC_2_SQRT_PI};

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::onnx::steps::{not_among, scaled, shifted};
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// x * (1 + erf(x / sqrt(2))) / 2
#[op(name = "nn.gelu", pattern = "elementwise")]
pub struct Gelu;

impl Operator for Gelu {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &|x| 0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2))
    }
}

computes!(Gelu, |x| {
    let erf = (x * FRAC_1_SQRT_2).call("erf");
    x * 0.5 * (erf + 1)
});

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ^ 3)))`, after Hendrycks and Gimpel (2016).
#[rule(approximate)]
fn approximate(_: &Gelu, at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    let (dtype, _) = at.tensor(x)?;
    let cubic = at.number(dtype, 0.044715)?;
    let slope = at.number(dtype, FRAC_2_PI.sqrt())?;
    let (one, half) = (at.number(dtype, 1.0)?, at.number(dtype, 0.5)?);
    let square = at.apply("multiply", &[x, x]);
    let scaled = at.apply("multiply", &[square, cubic]);
    let factor = at.apply("add", &[scaled, one]);
    let inner = at.apply("multiply", &[x, factor]);
    let inner = at.apply("multiply", &[inner, slope]);
    let tangent = at.apply("tanh", &[inner]);
    let sum = at.apply("add", &[tangent, one]);
    let halved = at.apply("multiply", &[x, half]);
    Some(at.apply("multiply", &[halved, sum]))
}

follows_precision!(Gelu);

/// `g (P + x p)`, the distribution and the density of the normal distribution at `x`.
#[rule(gradient)]
fn gradient(_: &Gelu, at: &mut Adjoint<'_>) -> Grads {
    let x = at.arg(0);
    let scaled = at.scale(x, FRAC_1_SQRT_2);
    let erf = at.apply("erf", &[scaled]);
    let sum = at.plus(erf, 1.0);
    let distribution = at.scale(sum, 0.5);
    let square = at.mul(x, x);
    let exponent = at.scale(square, -0.5);
    let bell = at.apply("exp", &[exponent]);
    let density = at.scale(bell, 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
    let tail = at.mul(x, density);
    let slope = at.add(distribution, tail);
    Grads::of([at.mul(at.grad(), slope)])
}

/// `Gelu`, by the error function or by `tanh`.
#[rule(import.onnx, key = "Gelu", since = 20)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    match node.text("approximate", "none")?.as_str() {
        "none" => Ok(vec![node.apply("nn.gelu", &[x])?]),
        // x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2
        "tanh" => {
            let square = node.apply("multiply", &[x, x])?;
            let cube = node.apply("multiply", &[square, x])?;
            let cube = scaled(node, cube, 0.044715)?;
            let inner = node.apply("add", &[x, cube])?;
            let inner = scaled(node, inner, (2.0 / std::f64::consts::PI).sqrt())?;
            let inner = node.apply("tanh", &[inner])?;
            let inner = shifted(node, inner, 1.0)?;
            let half = scaled(node, x, 0.5)?;
            Ok(vec![node.apply("multiply", &[half, inner])?])
        }
        other => not_among("approximate", other, &["none", "tanh"]),
    }
}
