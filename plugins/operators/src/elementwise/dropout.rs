//! What training would drop, which inference keeps.
//!
//! ```ir
//! %y = nn.dropout(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::number;
use crate::onnx::steps::{cast_to, reshape_to, wide};
use crate::precision::follows_precision;
use crate::program::elementwise::computes;
use crate::random::uniform::unit;

/// The identity: nothing is dropped in inference
#[op(name = "nn.dropout", pattern = "elementwise")]
pub struct Dropout {
    /// what training would drop
    #[attr(default = 0.5)]
    #[allow(dead_code, reason = "only training would read it")]
    rate: f64,
}

impl Operator for Dropout {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

computes!(Dropout, |x| x);

follows_precision!(Dropout);

/// `g`.
#[rule(gradient)]
fn gradient(_: &Dropout, at: &mut Adjoint<'_>) -> Grads {
    Grads::of([at.grad()])
}

/// The data itself.
#[rule(decompose.inference)]
fn decompose(_: &Dropout, at: &mut Site<'_>) -> Expr {
    at.arg(0)
}

/// `Dropout` with its rate as attribute.
#[rule(import.onnx, key = "Dropout", since = 7, until = 11)]
fn import_attribute(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let rate = node.float_or("ratio", 0.5)?;
    Ok(vec![node.call("nn.dropout", &[x], &[("rate", rate.into())])?])
}

/// `Dropout` with its rate, and whether it is training, as inputs, which may be computed.
#[rule(import.onnx, key = "Dropout", since = 12)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let rate = node.optional(1).and_then(|rate| node.number(rate)).and_then(Scalar::as_float);
    let training = node.optional(2);
    let is_training = training.is_some_and(|value| node.number(value) != Some(Scalar::Bool(false)));
    // At a rate of zero nothing is left out in training either.
    match training.filter(|_| is_training && rate != Some(0.0)) {
        Some(training) => import_training(node, x, training),
        None => import_inference(node, x, rate),
    }
}

fn import_inference(node: &mut Node<'_>, x: Value, rate: Option<f64>) -> Outputs {
    node.ignore("seed");
    let y = node.call("nn.dropout", &[x], &[("rate", rate.unwrap_or(0.5).into())])?;
    if node.output_count() < 2 {
        return Ok(vec![y]);
    }
    let dims = node.dims(x)?;
    let shape = node.shape(&dims)?;
    let attrs = [("value", true.into()), ("dtype", DType::BOOL.to_string().into())];
    let mask = node.call("full", &[shape], &attrs)?;
    Ok(vec![y, mask])
}

/// Kept, and divided by the part that is kept, where a number of [0, 1) is not below the rate; as it is where it is not training.
fn import_training(node: &mut Node<'_>, x: Value, training: Value) -> Outputs {
    let (dtype, dims) = (node.dtype(x)?, node.dims(x)?);
    let number = wide(dtype);
    let rate = match node.optional(1) {
        Some(rate) => one_number(node, rate)?,
        None => node.scalar(number, 0.5)?,
    };
    let rate = cast_to(node, rate, number)?;
    let training = one_number(node, training)?;
    let drawn = unit(node, &dims, number)?;
    let is_kept = node.apply("greater_equal", &[drawn, rate])?;
    let is_inference = node.apply("logical_not", &[training])?;
    let mask = node.apply("logical_or", &[is_kept, is_inference])?;
    let [one, zero] = [1.0, 0.0].map(|value| node.scalar(number, value));
    let (one, zero) = (one?, zero?);
    let kept = node.apply("subtract", &[one, rate])?;
    let divisor = node.apply("where", &[training, kept, one])?;
    let wide_x = cast_to(node, x, number)?;
    let grown = node.apply("divide", &[wide_x, divisor])?;
    let y = node.apply("where", &[mask, grown, zero])?;
    Ok(vec![cast_to(node, y, dtype)?, mask])
}

/// A number without dimensions, however many of extent 1 it has.
fn one_number(node: &mut Node<'_>, value: Value) -> std::result::Result<Value, Problem> {
    match node.dims(value)?.is_empty() {
        true => Ok(value),
        false => reshape_to(node, value, &[]),
    }
}
