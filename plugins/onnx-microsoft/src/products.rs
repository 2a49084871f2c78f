//! Products of matrices with more than a product in a node.

use tenon_plugin_api::rule::prelude::*;

use crate::steps::{cast_to, only, plus_input, reshape_to, scaled};

/// `FusedMatMul`: alpha times a product of matrices that may be transposed.
#[rule(import.onnx, domain = "com.microsoft", key = "FusedMatMul")]
fn fused_matmul(node: &mut Node<'_>) -> Outputs {
    let (a, b) = (node.input(0)?, node.input(1)?);
    only(node, "transBatchA", 0)?;
    only(node, "transBatchB", 0)?;
    let flags = [("transA", a, "transpose_a"), ("transB", b, "transpose_b")];
    let mut attrs = Vec::new();
    for (name, x, attr) in flags {
        // A vector has no axes to change.
        let is_matrix = node.dims(x)?.len() >= 2;
        if node.flag(name, false)? && is_matrix {
            attrs.push((attr, true.into()));
        }
    }
    let y = node.call("matmul", &[a, b], &attrs)?;
    let alpha = node.float_or("alpha", 1.0)?;
    Ok(vec![scaled(node, y, alpha)?])
}

/// `FusedGemm`: a product, a sum and an activation.
#[rule(import.onnx, domain = "com.microsoft", key = "FusedGemm")]
fn fused_gemm(node: &mut Node<'_>) -> Outputs {
    let (a, b) = (node.input(0)?, node.input(1)?);
    let attrs = [
        ("transpose_a", node.flag("transA", false)?.into()),
        ("transpose_b", node.flag("transB", false)?.into()),
    ];
    let y = node.call("matmul", &[a, b], &attrs)?;
    let alpha = node.float_or("alpha", 1.0)?;
    let mut y = scaled(node, y, alpha)?;
    if let Some(c) = node.optional(2) {
        let beta = node.float_or("beta", 1.0)?;
        let c = scaled(node, c, beta)?;
        y = node.apply("add", &[y, c])?;
    }
    Ok(vec![activated(node, y)?])
}

fn activated(node: &mut Node<'_>, y: Value) -> Result<Value, Problem> {
    let alpha = node.float_or("activation_alpha", 0.01)?;
    node.ignore("activation_beta");
    node.ignore("activation_gamma");
    match node.text("activation", "")?.as_str() {
        "" => Ok(y),
        "Relu" => node.apply("nn.relu", &[y]),
        "Tanh" => node.apply("tanh", &[y]),
        "Sigmoid" => node.apply("sigmoid", &[y]),
        "LeakyRelu" => node.call("nn.leaky_relu", &[y], &[("alpha", alpha.into())]),
        other => unsupported(format!("the activation {other:?}")),
    }
}

/// `MatMulIntegerToFloat`: a product of integers, on the product of their scales.
#[rule(import.onnx, domain = "com.microsoft", key = "MatMulIntegerToFloat")]
fn matmul_integer_to_float(node: &mut Node<'_>) -> Outputs {
    let (a, b) = (node.input(0)?, node.input(1)?);
    let (a, b) = (moved(node, a, 4)?, moved(node, b, 5)?);
    let product = node.apply("matmul", &[a, b])?;
    let product = cast_to(node, product, DType::F32)?;
    let scales = [row_of(node, 2)?, row_of(node, 3)?];
    let scale = node.apply("multiply", &scales)?;
    let y = node.apply("multiply", &[product, scale])?;
    Ok(vec![plus_input(node, y, 6)?])
}

/// `DynamicQuantizeMatMul`: data quantized on a scale of their own, times quantized weights.
#[rule(import.onnx, domain = "com.microsoft", key = "DynamicQuantizeMatMul")]
fn dynamic_quantize_matmul(node: &mut Node<'_>) -> Outputs {
    let a = node.input(0)?;
    let Quantized { value, scale, zero } = quantized(node, a)?;
    let a = cast_to(node, value, DType::I32)?;
    let zero = cast_to(node, zero, DType::I32)?;
    let a = node.apply("subtract", &[a, zero])?;
    let b = node.input(1)?;
    let b = moved(node, b, 3)?;
    let product = node.apply("matmul", &[a, b])?;
    let product = cast_to(node, product, DType::F32)?;
    let of_b = row_of(node, 2)?;
    let scale = node.apply("multiply", &[scale, of_b])?;
    let y = node.apply("multiply", &[product, scale])?;
    Ok(vec![plus_input(node, y, 4)?])
}

/// An input as i32, less its zero point, one for all or one for each column.
fn moved(node: &mut Node<'_>, x: Value, zero: usize) -> Result<Value, Problem> {
    let x = cast_to(node, x, DType::I32)?;
    if node.optional(zero).is_none() {
        return Ok(x);
    }
    let zero = row_of(node, zero)?;
    let zero = cast_to(node, zero, DType::I32)?;
    node.apply("subtract", &[x, zero])
}

/// One number for all without dimensions, or one for each column.
fn row_of(node: &mut Node<'_>, index: usize) -> Result<Value, Problem> {
    let value = node.input(index)?;
    let one = node.cx().dim(1);
    match *node.dims(value)?.as_slice() {
        [count] if count == one => reshape_to(node, value, &[]),
        _ => Ok(value),
    }
}

/// Numbers on a scale of their own.
pub(crate) struct Quantized {
    pub(crate) value: Value,
    pub(crate) scale: Value,
    pub(crate) zero: Value,
}

/// As `DynamicQuantizeLinear`: u8, on the scale from the least element to the largest one, zero among them.
pub(crate) fn quantized(node: &mut Node<'_>, x: Value) -> Result<Quantized, Problem> {
    let zero = node.scalar_like(x, 0.0)?;
    let top = node.call("max", &[x], &[("keepdims", false.into())])?;
    let top = node.apply("maximum", &[top, zero])?;
    let bottom = node.call("min", &[x], &[("keepdims", false.into())])?;
    let bottom = node.apply("minimum", &[bottom, zero])?;
    let range = node.apply("subtract", &[top, bottom])?;
    let steps = node.scalar_like(x, 255.0)?;
    let scale = node.apply("divide", &[range, steps])?;
    let one = node.scalar_like(x, 1.0)?;
    let is_nothing = node.apply("equal", &[range, zero])?;
    let scale = node.apply("where", &[is_nothing, one, scale])?;
    let below = node.apply("divide", &[bottom, scale])?;
    let below = node.apply("subtract", &[zero, below])?;
    let bounds = [("min", 0.0.into()), ("max", 255.0.into())];
    let below = node.call("clip", &[below], &bounds)?;
    let below = node.apply("round", &[below])?;
    let y = node.apply("divide", &[x, scale])?;
    let y = node.apply("round", &[y])?;
    let y = node.apply("add", &[y, below])?;
    let y = node.call("clip", &[y], &bounds)?;
    let value = cast_to(node, y, DType::U8)?;
    Ok(Quantized { value, scale, zero: cast_to(node, below, DType::U8)? })
}
