//! A product of matrices with what is added to it.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::scaled;

/// `Gemm`: alpha * a * b + beta * c. A weight is brought into the form that `nn.dense` takes.
#[rule(import.onnx, key = "Gemm", since = 7)]
fn gemm(node: &mut Node<'_>) -> Outputs {
    let (a, b) = (node.input(0)?, node.input(1)?);
    for value in [a, b] {
        let rank = node.dims(value)?.len();
        if rank != 2 {
            return invalid(format!("a matrix is expected, not a tensor of {rank} dimensions"));
        }
    }
    let (flip_a, flip_b) = (node.flag("transA", false)?, node.flag("transB", false)?);
    let (alpha, beta) = (node.float_or("alpha", 1.0)?, node.float_or("beta", 1.0)?);
    let product = if !flip_a && flip_b {
        node.apply("nn.dense", &[a, b])?
    } else if !flip_a && node.as_constant(b).is_some() {
        let flipped = node.call("transpose", &[b], &[("axes", vec![1, 0].into())])?;
        node.apply("nn.dense", &[a, flipped])?
    } else {
        let mut attrs = Vec::new();
        if flip_a {
            attrs.push(("transpose_a", true.into()));
        }
        if flip_b {
            attrs.push(("transpose_b", true.into()));
        }
        node.call("matmul", &[a, b], &attrs)?
    };
    let product = scaled(node, product, alpha)?;
    match node.optional(2) {
        None => Ok(vec![product]),
        Some(c) => {
            let c = scaled(node, c, beta)?;
            Ok(vec![node.apply("add", &[product, c])?])
        }
    }
}
