//! Matrix products.

use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid};
use crate::onnx::import::node::NodeCx;

use super::scalar::scalar_like;

/// `MatMul`, as numpy has it: a vector counts as a row on the left and as a column on the right.
pub(in crate::onnx::import) fn matmul(cx: &mut NodeCx<'_, '_>) -> Result<Vec<Value>, Problem> {
    let (mut a, mut b) = (cx.input(0)?, cx.input(1)?);
    let ranks = [cx.dims(a)?.len(), cx.dims(b)?.len()];
    if ranks.contains(&0) {
        return invalid("a matrix product of a number");
    }
    let mut gone = Vec::new();
    if ranks[0] == 1 {
        a = cx.call("expand_dims", &[a], &[("axis", vec![0].into())])?;
        gone.push(-2);
    }
    if ranks[1] == 1 {
        b = cx.call("expand_dims", &[b], &[("axis", vec![1].into())])?;
        gone.push(-1);
    }
    let y = cx.apply("matmul", &[a, b])?;
    match gone.is_empty() {
        true => Ok(vec![y]),
        false => Ok(vec![cx.call("squeeze", &[y], &[("axis", gone.into())])?]),
    }
}

/// `Gemm`: alpha * a * b + beta * c. A weight is brought into the form that `nn.dense` takes.
pub(in crate::onnx::import) fn gemm(cx: &mut NodeCx<'_, '_>) -> Result<Vec<Value>, Problem> {
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    for value in [a, b] {
        let rank = cx.dims(value)?.len();
        if rank != 2 {
            return invalid(format!("a matrix is expected, not a tensor of {rank} dimensions"));
        }
    }
    let (flip_a, flip_b) = (cx.flag("transA", false)?, cx.flag("transB", false)?);
    let (alpha, beta) = (cx.float_or("alpha", 1.0)?, cx.float_or("beta", 1.0)?);
    let product = if !flip_a && flip_b {
        cx.apply("nn.dense", &[a, b])?
    } else if !flip_a && cx.as_constant(b).is_some() {
        let flipped = cx.call("transpose", &[b], &[("axes", vec![1, 0].into())])?;
        cx.apply("nn.dense", &[a, flipped])?
    } else {
        let mut attrs = Vec::new();
        if flip_a {
            attrs.push(("transpose_a", true.into()));
        }
        if flip_b {
            attrs.push(("transpose_b", true.into()));
        }
        cx.call("matmul", &[a, b], &attrs)?
    };
    let product = scaled(cx, product, alpha)?;
    match cx.optional(2) {
        None => Ok(vec![product]),
        Some(c) => {
            let c = scaled(cx, c, beta)?;
            Ok(vec![cx.apply("add", &[product, c])?])
        }
    }
}

fn scaled(cx: &mut NodeCx<'_, '_>, x: Value, by: f64) -> Result<Value, Problem> {
    if by == 1.0 {
        return Ok(x);
    }
    let by = scalar_like(cx, x, by)?;
    cx.apply("multiply", &[x, by])
}
