//! The sum of two tensors.
//!
//! ```ir
//! %c = add(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::simplify::{neutral, split_constant};
use super::types::numbers;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// a + b
#[op(name = "add", args = 2, pattern = "broadcast")]
pub struct Add;

impl Operator for Add {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, <T as Number>::add)
        }))
    }
}

computes!(Add, |a, b| a + b);

/// `x + -0 => x`, of integers also `x + 0`; `(x + c) + d => x + (c + d)`, which rounds differently.
#[rule(simplify)]
fn simplify(_: &Add, at: &mut Site<'_>) -> Option<Expr> {
    let is_float = at.tensor(at.arg(0))?.0.is_float();
    let is_neutral = |x: f64| x == 0.0 && (x.is_sign_negative() || !is_float);
    neutral(at, true, is_neutral).or_else(|| sum_of_constants(at))
}

fn sum_of_constants(at: &mut Site<'_>) -> Option<Expr> {
    let args = at.call.args.clone();
    let (inner, outer) = split_constant(at, &args)?;
    let inner = at.call_of(inner, "add")?;
    let (x, constant) = split_constant(at, &inner.args)?;
    let sum = at.apply("add", &[constant, outer]);
    let sum = at.apply("add", &[x, sum]);
    at.same_type(sum)
}

follows_precision!(Add);

/// `g`, `g`.
#[rule(gradient)]
fn gradient(_: &Add, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    at.summed([at.grad(), at.grad()])
}

crate::onnx::same!(Add is "Add" since 7);

/// `Add` of dimensions.
#[rule(import.onnx, key = "Add", since = 7, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::arithmetic(node, |node, a, b| Some(node.cx().dim_add(a, b)))
}
