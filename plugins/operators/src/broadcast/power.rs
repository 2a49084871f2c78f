//! A power, element by element.
//!
//! ```ir
//! %c = power(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```
//!
//! Of integers it is exact, modulo the size of the type; a negative exponent gives the truncated quotient.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::types::numbers;
use crate::kernel::rows::{each, zip};
use crate::onnx::steps::cast_to;
use crate::program::elementwise::computes;

/// a to the power of b
#[op(name = "power", args = 2, pattern = "broadcast")]
pub struct Power;

impl Operator for Power {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, <T as Number>::pow)
        }))
    }
}

computes!(Power, |a, b| a.call_with("pow", b));

/// `x ^ c` for `c` of 2, 3, 0.5, -0.5, -1.
#[rule(approximate)]
fn approximate(_: &Power, at: &mut Site<'_>) -> Option<Expr> {
    let [x, exponent] = at.args()?;
    Some(match at.splat(exponent)? {
        2.0 => at.apply("multiply", &[x, x]),
        3.0 => {
            let square = at.apply("multiply", &[x, x]);
            at.apply("multiply", &[square, x])
        }
        0.5 => at.apply("sqrt", &[x]),
        -0.5 => at.apply("rsqrt", &[x]),
        -1.0 => {
            let (dtype, _) = at.tensor(x)?;
            let one = at.number(dtype, 1.0)?;
            at.apply("divide", &[one, x])
        }
        _ => return None,
    })
}

/// The square and the cube of wide floats as products, which are nearer to them than a power needs to be.
#[rule(canonicalize)]
fn canonicalize(_: &Power, at: &mut Site<'_>) -> Option<Expr> {
    let [x, exponent] = at.args()?;
    let (dtype, _) = at.tensor(x)?;
    if !matches!(dtype, DType::F32 | DType::F64) {
        return None;
    }
    let product = |at: &mut Site<'_>, a| at.apply("multiply", &[a, x]);
    match at.splat(exponent)? {
        2.0 => Some(product(at, x)),
        3.0 => {
            let square = product(at, x);
            Some(product(at, square))
        }
        _ => None,
    }
}

/// `g b a^(b - 1)`, `g y log a`.
#[rule(gradient)]
fn gradient(_: &Power, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let (x, exponent) = (at.arg(0), at.arg(1));
    let less = at.plus(exponent, -1.0);
    let slope = at.apply("power", &[x, less]);
    let slope = at.mul(exponent, slope);
    let a = at.mul(at.grad(), slope);
    let log = at.apply("log", &[x]);
    let growth = at.mul(at.value(), log);
    let b = at.mul(at.grad(), growth);
    at.summed([a, b])
}

/// `Pow`: base and exponent may be of different types; the result is of the base's.
#[rule(import.onnx, key = "Pow", since = 7)]
fn import(node: &mut Node<'_>) -> Outputs {
    let (x, y) = (node.input(0)?, node.input(1)?);
    let (base, exponent) = (node.dtype(x)?, node.dtype(y)?);
    // A type that has all exponents. That the power is one of the base, modulo its size, a wider one does not change.
    let common = match (base.is_float(), exponent.is_float()) {
        (true, true) if exponent.bits() > base.bits() => exponent,
        (true, _) => base,
        (false, true) => exponent,
        (false, false) if base.is_signed() == exponent.is_signed() => {
            if exponent.bits() > base.bits() { exponent } else { base }
        }
        (false, false) => DType::I64,
    };
    let (x, y) = (cast_to(node, x, common)?, cast_to(node, y, common)?);
    let power = node.apply("power", &[x, y])?;
    Ok(vec![cast_to(node, power, base)?])
}
