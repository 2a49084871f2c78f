//! What training would drop, which inference keeps.
//!
//! ```ir
//! %y = nn.dropout(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::number;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

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

/// `Dropout` with its rate, and whether it is training, as inputs.
#[rule(import.onnx, key = "Dropout", since = 12)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    node.ignore("seed");
    let rate = node.optional(1).and_then(|rate| node.number(rate)).and_then(Scalar::as_float);
    if let Some(training) = node.optional(2)
        && node.number(training) != Some(Scalar::Bool(false))
    {
        // At a rate of zero nothing is left out in training either.
        match (rate, node.optional(1)) {
            (Some(0.0), _) => {}
            (None, Some(_)) => return node.not_constant(1),
            _ => return unsupported("training mode"),
        }
    }
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
