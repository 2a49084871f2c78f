//! Norms: sums of something of each element along axes.

use tenon_plugin_api::rule::prelude::*;

use super::reduce::{Axes, axes, is_of_nothing, reduce};

/// `ReduceL1`: the sum of the absolute values.
#[rule(import.onnx, key = "ReduceL1", since = 1)]
fn l1(node: &mut Node<'_>) -> Outputs {
    let (x, axes) = (node.input(0)?, axes(node, 18)?);
    let x = node.apply("abs", &[x])?;
    Ok(vec![reduce(node, "sum", x, &axes)?])
}

/// `ReduceL2`: the root of the sum of squares.
#[rule(import.onnx, key = "ReduceL2", since = 1)]
fn l2(node: &mut Node<'_>) -> Outputs {
    let (x, axes) = (node.input(0)?, axes(node, 18)?);
    let square = node.apply("multiply", &[x, x])?;
    let sum = reduce(node, "sum", square, &axes)?;
    Ok(vec![node.apply("sqrt", &[sum])?])
}

/// `ReduceSumSquare`.
#[rule(import.onnx, key = "ReduceSumSquare", since = 1)]
fn sum_square(node: &mut Node<'_>) -> Outputs {
    let (x, axes) = (node.input(0)?, axes(node, 18)?);
    let square = node.apply("multiply", &[x, x])?;
    Ok(vec![reduce(node, "sum", square, &axes)?])
}

/// `ReduceLogSum`.
#[rule(import.onnx, key = "ReduceLogSum", since = 1)]
fn log_sum(node: &mut Node<'_>) -> Outputs {
    let (x, axes) = (node.input(0)?, axes(node, 18)?);
    let sum = reduce(node, "sum", x, &axes)?;
    Ok(vec![node.apply("log", &[sum])?])
}

/// `ReduceLogSumExp`: the largest element, and the logarithm of the sum of what the others are beside it, which does
/// not overflow. One that is infinite or no number stays out of the difference, and comes back by its exponential.
#[rule(import.onnx, key = "ReduceLogSumExp", since = 1)]
fn log_sum_exp(node: &mut Node<'_>) -> Outputs {
    let (x, axes) = (node.input(0)?, axes(node, 18)?);
    if axes.is_noop {
        return Ok(vec![x]);
    }
    if is_of_nothing(node, x, &axes)? {
        let sum = reduce(node, "sum", x, &axes)?;
        return Ok(vec![node.apply("log", &[sum])?]);
    }
    let kept = Axes { axes: axes.axes.clone(), keepdims: true, is_noop: false };
    let top = reduce(node, "max", x, &kept)?;
    let size = node.apply("abs", &[top])?;
    let (limit, zero) = (node.scalar_like(x, f64::INFINITY)?, node.scalar_like(x, 0.0)?);
    let is_finite = node.apply("less", &[size, limit])?;
    let top = node.apply("where", &[is_finite, top, zero])?;
    let lowered = node.apply("subtract", &[x, top])?;
    let exp = node.apply("exp", &[lowered])?;
    let sum = reduce(node, "sum", exp, &axes)?;
    let log = node.apply("log", &[sum])?;
    let dims = node.dims(log)?;
    let shape = node.shape(&dims)?;
    let top = node.apply("reshape", &[top, shape])?;
    Ok(vec![node.apply("add", &[log, top])?])
}
