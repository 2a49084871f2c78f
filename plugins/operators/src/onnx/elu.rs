//! Exponentials below zero.
//!
//! ```text
//! Elu   alpha * (exp(x) - 1)           below zero, x above
//! Selu  gamma * Elu
//! Celu  alpha * (exp(x / alpha) - 1)   below zero, x above
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{below_zero, scaled, shifted};

/// `Elu`: alpha * (exp(x) - 1) below zero.
#[rule(import.onnx, key = "Elu", since = 6)]
fn elu(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let alpha = node.float_or("alpha", 1.0)?;
    let below = exp_minus_one(node, x)?;
    let below = scaled(node, below, alpha)?;
    Ok(vec![below_zero(node, x, below)?])
}

/// `Selu`: gamma * elu(x).
#[rule(import.onnx, key = "Selu", since = 6)]
fn selu(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let alpha = node.float_or("alpha", 1.673_263_2)?;
    let gamma = node.float_or("gamma", 1.050_701)?;
    let below = exp_minus_one(node, x)?;
    let below = scaled(node, below, alpha)?;
    let elu = below_zero(node, x, below)?;
    Ok(vec![scaled(node, elu, gamma)?])
}

/// `Celu`: alpha * (exp(x / alpha) - 1) below zero.
#[rule(import.onnx, key = "Celu", since = 12)]
fn celu(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let alpha = node.float_or("alpha", 1.0)?;
    let by = node.scalar_like(x, alpha)?;
    let below = node.apply("divide", &[x, by])?;
    let below = exp_minus_one(node, below)?;
    let below = scaled(node, below, alpha)?;
    Ok(vec![below_zero(node, x, below)?])
}

fn exp_minus_one(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    let exp = node.apply("exp", &[x])?;
    shifted(node, exp, -1.0)
}
