//! Products of matrices of integers that stand for numbers on a scale.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, reshape_to};
use crate::product::matmul::numpy_product;

/// `MatMulInteger`: (a - its zero point) times (b - its zero point).
#[rule(import.onnx, key = "MatMulInteger", since = 10)]
fn matmul_integer(node: &mut Node<'_>) -> Outputs {
    let [a, b] = [moved(node, 0, 2, Side::Left)?, moved(node, 1, 3, Side::Right)?];
    Ok(vec![numpy_product(node, a, b)?])
}

/// `QLinearMatMul`: the same on the scales of the factors, put on the scale of the result.
#[rule(import.onnx, key = "QLinearMatMul", since = 10)]
fn quantized_matmul(node: &mut Node<'_>) -> Outputs {
    let [a, b] = [moved(node, 0, 2, Side::Left)?, moved(node, 3, 5, Side::Right)?];
    let product = numpy_product(node, a, b)?;
    let scales = [spread(node, 1, Side::Left)?, spread(node, 4, Side::Right)?];
    let on = [node.input(6)?, node.input(7)?];
    Ok(vec![requantized(node, product, scales, on)?])
}

/// Sums of integers on the product of two scales, put on another scale: multiplied once, rounded to even, moved by the zero point,
/// and clipped.
pub(crate) fn requantized(
    node: &mut Node<'_>,
    sums: Value,
    [a, b]: [Value; 2],
    [scale, zero]: [Value; 2],
) -> Result<Value, Problem> {
    let dtype = node.dtype(zero)?;
    if !matches!(dtype, DType::U8 | DType::I8 | DType::U16 | DType::I16) {
        return unsupported(format!("the element type {dtype}"));
    }
    let mut y = cast_to(node, sums, DType::F32)?;
    let [a, b] = [cast_to(node, a, DType::F32)?, cast_to(node, b, DType::F32)?];
    let scale = cast_to(node, scale, DType::F32)?;
    let factor = node.apply("multiply", &[a, b])?;
    let factor = node.apply("divide", &[factor, scale])?;
    y = node.apply("multiply", &[y, factor])?;
    y = node.apply("round", &[y])?;
    let zero = cast_to(node, zero, DType::F32)?;
    y = node.apply("add", &[y, zero])?;
    let (min, max) = dtype.int_bounds();
    let bounds = [("min", (min as f64).into()), ("max", (max as f64).into())];
    y = node.call("clip", &[y], &bounds)?;
    cast_to(node, y, dtype)
}

/// Which factor of a product something belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

/// An input as i32, less its zero point.
fn moved(node: &mut Node<'_>, index: usize, zero: usize, side: Side) -> Result<Value, Problem> {
    let x = node.input(index)?;
    let x = cast_to(node, x, DType::I32)?;
    if node.optional(zero).is_none() {
        return Ok(x);
    }
    let zero = spread(node, zero, side)?;
    let zero = cast_to(node, zero, DType::I32)?;
    node.apply("subtract", &[x, zero])
}

/// An input that has one number for all, or one for each row of the left factor, or for each column of the right one.
fn spread(node: &mut Node<'_>, index: usize, side: Side) -> Result<Value, Problem> {
    let value = node.input(index)?;
    let one = node.cx().dim(1);
    match (node.dims(value)?.as_slice(), side) {
        (&[count], _) if count == one => reshape_to(node, value, &[]),
        (&[count], Side::Left) => reshape_to(node, value, &[count, one]),
        _ => Ok(value),
    }
}
