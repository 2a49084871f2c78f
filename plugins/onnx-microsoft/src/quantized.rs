//! Operators on numbers on a scale: taken off it, computed, and put on that of the result.

use tenon_plugin_api::rule::prelude::*;

use crate::steps::{cast_to, joined, reshape_to, scalar};

/// Integers on a scale as the numbers that they stand for; an input is followed by its scale and its zero point.
fn numbers(node: &mut Node<'_>, index: usize) -> Result<Value, Problem> {
    let x = node.input(index)?;
    let x = cast_to(node, x, DType::I32)?;
    let mut y = x;
    if node.optional(index + 2).is_some() {
        let zero = scalar(node, index + 2)?;
        let zero = cast_to(node, zero, DType::I32)?;
        y = node.apply("subtract", &[x, zero])?;
    }
    let y = cast_to(node, y, DType::F32)?;
    let scale = scalar(node, index + 1)?;
    node.apply("multiply", &[y, scale])
}

/// Numbers on the scale of input `scale`, whose zero point follows it; without one they are of type `dtype`.
fn on_scale(node: &mut Node<'_>, y: Value, scale: usize, dtype: DType) -> Result<Value, Problem> {
    let by = scalar(node, scale)?;
    let y = node.apply("divide", &[y, by])?;
    let mut y = node.apply("round", &[y])?;
    let mut dtype = dtype;
    if let Some(zero) = node.optional(scale + 1) {
        dtype = node.dtype(zero)?;
        let zero = reshape_to(node, zero, &[])?;
        let zero = cast_to(node, zero, DType::F32)?;
        y = node.apply("add", &[y, zero])?;
    }
    if !matches!(dtype, DType::U8 | DType::I8) {
        return unsupported(format!("the element type {dtype}"));
    }
    let (min, max) = dtype.int_bounds();
    let bounds = [("min", (min as f64).into()), ("max", (max as f64).into())];
    let y = node.call("clip", &[y], &bounds)?;
    cast_to(node, y, dtype)
}

/// `QLinearAdd`.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearAdd")]
fn add(node: &mut Node<'_>) -> Outputs {
    of_two(node, "add")
}

/// `QLinearMul`.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearMul")]
fn multiply(node: &mut Node<'_>) -> Outputs {
    of_two(node, "multiply")
}

fn of_two(node: &mut Node<'_>, op: &str) -> Outputs {
    let dtype = node.dtype(node.input(0)?)?;
    let (a, b) = (numbers(node, 0)?, numbers(node, 3)?);
    let y = node.apply(op, &[a, b])?;
    Ok(vec![on_scale(node, y, 6, dtype)?])
}

/// `QLinearSigmoid`.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearSigmoid")]
fn sigmoid(node: &mut Node<'_>) -> Outputs {
    let dtype = node.dtype(node.input(0)?)?;
    let x = numbers(node, 0)?;
    let y = node.apply("sigmoid", &[x])?;
    Ok(vec![on_scale(node, y, 3, dtype)?])
}

/// `QLinearLeakyRelu`.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearLeakyRelu")]
fn leaky_relu(node: &mut Node<'_>) -> Outputs {
    let dtype = node.dtype(node.input(0)?)?;
    let x = numbers(node, 0)?;
    let alpha = node.float_or("alpha", 0.01)?;
    let y = node.call("nn.leaky_relu", &[x], &[("alpha", alpha.into())])?;
    Ok(vec![on_scale(node, y, 3, dtype)?])
}

/// `QLinearSoftmax`: along one axis since version 13 of the standard, along all from an axis on before.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearSoftmax")]
fn softmax(node: &mut Node<'_>) -> Outputs {
    let dtype = node.dtype(node.input(0)?)?;
    let x = numbers(node, 0)?;
    let dims = node.dims(x)?;
    let axis = node.axis(node.int_or("axis", -1)?, dims.len())?;
    let y = match node.int_or("opset", 13)? {
        13.. => node.call("nn.softmax", &[x], &[("axis", (axis as i64).into())])?,
        _ => {
            let parts = [&dims[..axis], &dims[axis..]].map(|part| node.cx().dim_product(part));
            let rows = reshape_to(node, x, &parts)?;
            let rows = node.call("nn.softmax", &[rows], &[("axis", 1.into())])?;
            reshape_to(node, rows, &dims)?
        }
    };
    Ok(vec![on_scale(node, y, 3, dtype)?])
}

/// `QLinearConcat`: each tensor from its own scale to that of the result.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearConcat")]
fn concat(node: &mut Node<'_>) -> Outputs {
    let axis = node.int_or("axis", 0)?;
    let dtype = node.dtype(node.input(1)?)?;
    let mut parts = Vec::new();
    for index in (2..node.input_count()).step_by(3) {
        parts.push(numbers(node, index)?);
    }
    let y = joined(node, &parts, axis)?;
    Ok(vec![on_scale(node, y, 0, dtype)?])
}

/// `QLinearWhere`.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearWhere")]
fn choose(node: &mut Node<'_>) -> Outputs {
    let condition = node.input(0)?;
    let dtype = node.dtype(node.input(1)?)?;
    let (x, y) = (numbers(node, 1)?, numbers(node, 4)?);
    let z = node.apply("where", &[condition, x, y])?;
    Ok(vec![on_scale(node, z, 7, dtype)?])
}

/// `QLinearReduceMean`.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearReduceMean")]
fn mean(node: &mut Node<'_>) -> Outputs {
    let dtype = node.dtype(node.input(0)?)?;
    let x = numbers(node, 0)?;
    let mut attrs = vec![("keepdims", node.flag("keepdims", true)?.into())];
    if let Some(axes) = node.ints("axes")? {
        attrs.push(("axis", axes.into()));
    }
    let y = node.call("mean", &[x], &attrs)?;
    Ok(vec![on_scale(node, y, 3, dtype)?])
}

/// `QLinearGlobalAveragePool`.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearGlobalAveragePool")]
fn global_average(node: &mut Node<'_>) -> Outputs {
    let dtype = node.dtype(node.input(0)?)?;
    let x = numbers(node, 0)?;
    let rank = node.dims(x)?.len() as i64;
    let axes: Vec<i64> = match node.flag("channels_last", false)? {
        true => (1..rank - 1).collect(),
        false => (2..rank).collect(),
    };
    let y = node.call("mean", &[x], &[("axis", axes.into()), ("keepdims", true.into())])?;
    Ok(vec![on_scale(node, y, 3, dtype)?])
}

/// `QLinearAveragePool`, over two axes.
#[rule(import.onnx, domain = "com.microsoft", key = "QLinearAveragePool")]
fn average(node: &mut Node<'_>) -> Outputs {
    let dtype = node.dtype(node.input(0)?)?;
    let x = numbers(node, 0)?;
    let rank = node.dims(x)?.len();
    if rank != 4 {
        return unsupported(format!("an average over {} axes", rank.saturating_sub(2)));
    }
    let Some(size) = node.ints("kernel_shape")? else {
        return invalid("its attribute `kernel_shape` is missing");
    };
    let strides = node.ints("strides")?.unwrap_or(vec![1; 2]);
    let given = node.ints("pads")?.unwrap_or(vec![0; 4]);
    let padding = match node.text("auto_pad", "NOTSET")?.as_str() {
        "NOTSET" => given,
        "VALID" => vec![0; 4],
        other => return unsupported(format!("its attribute `auto_pad` is {other:?}")),
    };
    let is_ceil = node.flag("ceil_mode", false)?;
    let counts_padding = node.flag("count_include_pad", false)?;
    if is_ceil && counts_padding {
        return unsupported("an average that counts padding, with windows that reach over its end");
    }
    let layout = if node.flag("channels_last", false)? { "NHWC" } else { "NCHW" };
    let attrs = [
        ("pool_size", size.into()),
        ("strides", strides.into()),
        ("padding", padding.into()),
        ("ceil_mode", is_ceil.into()),
        ("count_include_pad", counts_padding.into()),
        ("layout", layout.into()),
    ];
    let y = node.call("nn.avg_pool2d", &[x], &attrs)?;
    Ok(vec![on_scale(node, y, 3, dtype)?])
}

/// `QGemm`: a product of integers and a bias of i32; on a scale where one is given, numbers where none is.
#[rule(import.onnx, domain = "com.microsoft", key = "QGemm")]
fn gemm(node: &mut Node<'_>) -> Outputs {
    let flips = [node.flag("transA", false)?, node.flag("transB", false)?];
    let (a, b) = (moved(node, 0, flips[0])?, moved(node, 3, flips[1])?);
    let mut sums = node.apply("matmul", &[a, b])?;
    if let Some(c) = node.optional(6) {
        sums = node.apply("add", &[sums, c])?;
    }
    let sums = cast_to(node, sums, DType::F32)?;
    let of_a = scalar(node, 1)?;
    let of_b = spread(node, 4)?;
    let scale = node.apply("multiply", &[of_a, of_b])?;
    let alpha = node.float_or("alpha", 1.0)?;
    let alpha = node.scalar_like(scale, alpha)?;
    let scale = node.apply("multiply", &[scale, alpha])?;
    let y = node.apply("multiply", &[sums, scale])?;
    match node.optional(7) {
        Some(_) => Ok(vec![on_scale(node, y, 7, DType::U8)?]),
        None => Ok(vec![y]),
    }
}

/// A matrix, or what it is transposed, as i32, less its zero point, which is two inputs further.
fn moved(node: &mut Node<'_>, index: usize, is_flipped: bool) -> Result<Value, Problem> {
    match is_flipped {
        true => {
            let x = node.input(index)?;
            let x = node.apply("transpose", &[x])?;
            less_zero(node, x, index + 2)
        }
        false => without_zero(node, index, index + 2),
    }
}

/// An input as i32, less its zero point, which is input `zero` and may be one for each column.
pub(crate) fn without_zero(
    node: &mut Node<'_>,
    index: usize,
    zero: usize,
) -> Result<Value, Problem> {
    let x = node.input(index)?;
    less_zero(node, x, zero)
}

pub(crate) fn less_zero(node: &mut Node<'_>, x: Value, zero: usize) -> Result<Value, Problem> {
    let x = cast_to(node, x, DType::I32)?;
    if node.optional(zero).is_none() {
        return Ok(x);
    }
    let zero = spread(node, zero)?;
    let zero = cast_to(node, zero, DType::I32)?;
    node.apply("subtract", &[x, zero])
}

/// One number for all without dimensions, or one for each column.
pub(crate) fn spread(node: &mut Node<'_>, index: usize) -> Result<Value, Problem> {
    let value = node.input(index)?;
    let one = node.cx().dim(1);
    match *node.dims(value)?.as_slice() {
        [count] if count == one => reshape_to(node, value, &[]),
        _ => Ok(value),
    }
}
