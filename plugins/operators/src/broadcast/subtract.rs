//! The difference of two tensors.
//!
//! ```ir
//! %c = subtract(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::simplify::{neutral, zeros};
use super::types::numbers;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// a - b
#[op(name = "subtract", args = 2, pattern = "broadcast")]
pub struct Subtract;

impl Operator for Subtract {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, <T as Number>::sub)
        }))
    }
}

computes!(Subtract, |a, b| a - b);

/// `x - 0 => x`; `x - x => 0`, of integers.
#[rule(simplify)]
fn simplify(_: &Subtract, at: &mut Site<'_>) -> Option<Expr> {
    let is_zero = |x: f64| x == 0.0 && x.is_sign_positive();
    neutral(at, false, is_zero).or_else(|| {
        let [a, b] = at.args()?;
        let are_equal = at.definition(a) == at.definition(b);
        are_equal.then(|| zeros(at)).flatten()
    })
}

follows_precision!(Subtract);

/// `g`, `-g`.
#[rule(gradient)]
fn gradient(_: &Subtract, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let negated = at.neg(at.grad());
    at.summed([at.grad(), negated])
}

crate::onnx::same!(Subtract is "Sub" since 7);

/// `Sub` of dimensions.
#[rule(import.onnx, key = "Sub", since = 7, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::arithmetic(node, |node, a, b| Some(node.cx().dim_sub(a, b)))
}
