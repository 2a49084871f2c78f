//! An element times its sigmoid.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{check_equal, scaled};

/// `Swish`: x * sigmoid(alpha * x).
#[rule(import.onnx, key = "Swish", since = 24)]
fn swish(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    Ok(vec![swished(node, x)?])
}

/// `SwiGLU`: the first input's `Swish` times the second one, which has the same shape.
#[rule(import.onnx, key = "SwiGLU", since = 28)]
fn swiglu(node: &mut Node<'_>) -> Outputs {
    node.check_arity(2, 2)?;
    let (gate, x) = (node.input(0)?, node.input(1)?);
    let (gate_dims, dims) = (node.dims(gate)?, node.dims(x)?);
    if gate_dims.len() != dims.len() {
        return invalid("its inputs differ in rank");
    }
    for (&a, &b) in gate_dims.iter().zip(&dims) {
        check_equal(node, [a, b], "dimensions of its inputs")?;
    }
    let gate = swished(node, gate)?;
    Ok(vec![node.apply("multiply", &[gate, x])?])
}

fn swished(node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
    let alpha = node.float_or("alpha", 1.0)?;
    if alpha == 1.0 {
        return node.apply("nn.silu", &[x]);
    }
    let inner = scaled(node, x, alpha)?;
    let sigmoid = node.apply("sigmoid", &[inner])?;
    node.apply("multiply", &[x, sigmoid])
}
