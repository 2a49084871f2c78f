//! Rows of length one: `Normalizer`.
//!
//! ```text
//! MAX    y[n, f] = x[n, f] / max of x[n]
//! L1     y[n, f] = x[n, f] / sum of |x[n]|
//! L2     y[n, f] = x[n, f] / sqrt(sum of x[n]^2)
//! ```
//!
//! Where that is a division by zero, the row stays as it is. Of the maximum it is not the absolute value that counts.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, not_among};

/// `Normalizer`.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "Normalizer", since = 1)]
fn normalizer(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let x = cast_to(node, x, DType::F32)?;
    let along = [("axis", vec![-1].into()), ("keepdims", true.into())];
    let length = match node.text("norm", "MAX")?.as_str() {
        "MAX" => node.call("max", &[x], &along)?,
        "L1" => {
            let size = node.apply("abs", &[x])?;
            node.call("sum", &[size], &along)?
        }
        "L2" => {
            let square = node.apply("multiply", &[x, x])?;
            let sum = node.call("sum", &[square], &along)?;
            node.apply("sqrt", &[sum])?
        }
        other => return not_among("norm", other, &["MAX", "L1", "L2"]),
    };
    let (zero, one) = (node.scalar_like(x, 0.0)?, node.scalar_like(x, 1.0)?);
    let is_zero = node.apply("equal", &[length, zero])?;
    let length = node.apply("where", &[is_zero, one, length])?;
    Ok(vec![node.apply("divide", &[x, length])?])
}
