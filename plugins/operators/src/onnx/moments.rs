//! Mean and deviation over axes, and normalizations that are written out with them.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

/// `RMSNormalization`: by the root of the mean of squares over the axes from one on.
#[rule(import.onnx, key = "RMSNormalization", since = 23)]
fn root_mean_square(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let axes = last_axes(node, x)?;
    let epsilon = node.float_or("epsilon", 1e-5)?;
    let dtype = node.dtype(x)?;
    let wide = cast_to(node, x, if dtype == DType::F64 { dtype } else { DType::F32 })?;
    let inverse = inverse_root_mean_square(node, wide, &axes, epsilon)?;
    let y = node.apply("multiply", &[wide, inverse])?;
    let y = cast_to(node, y, dtype)?;
    let scale = node.input(1)?;
    Ok(vec![node.apply("multiply", &[y, scale])?])
}

/// `MeanVarianceNormalization`.
#[rule(import.onnx, key = "MeanVarianceNormalization", since = 9)]
fn mean_variance(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let axes = node.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let mean = mean_over(node, x, &axes)?;
    let centered = node.apply("subtract", &[x, mean])?;
    let square = node.apply("multiply", &[centered, centered])?;
    let variance = mean_over(node, square, &axes)?;
    let deviation = node.apply("sqrt", &[variance])?;
    // Beside the deviation, not the variance as elsewhere.
    let epsilon = node.scalar_like(deviation, 1e-9)?;
    let deviation = node.apply("add", &[deviation, epsilon])?;
    Ok(vec![node.apply("divide", &[centered, deviation])?])
}

/// The axes of a normalization over the last ones; the arithmetic is that of float32 or wider.
pub(crate) fn last_axes(node: &Node<'_>, x: Value) -> Result<Vec<i64>, Problem> {
    if node.int_or("stash_type", 1)? != 1 {
        return unsupported("stash_type other than 1");
    }
    let rank = node.dims(x)?.len();
    let axis = node.axis(node.int_or("axis", -1)?, rank)?;
    Ok((axis as i64..rank as i64).collect())
}

/// A tensor moved to mean 0 and scaled to variance 1.
pub(crate) struct Normal {
    pub(crate) y: Value,
    pub(crate) mean: Value,
    /// One over the standard deviation.
    pub(crate) inverse: Value,
}

pub(crate) fn normalized(
    node: &mut Node<'_>,
    x: Value,
    axes: &[i64],
    epsilon: f64,
) -> Result<Normal, Problem> {
    let mean = mean_over(node, x, axes)?;
    let centered = node.apply("subtract", &[x, mean])?;
    let inverse = inverse_root_mean_square(node, centered, axes, epsilon)?;
    let y = node.apply("multiply", &[centered, inverse])?;
    Ok(Normal { y, mean, inverse })
}

fn inverse_root_mean_square(
    node: &mut Node<'_>,
    x: Value,
    axes: &[i64],
    epsilon: f64,
) -> Result<Value, Problem> {
    let square = node.apply("multiply", &[x, x])?;
    let mean = mean_over(node, square, axes)?;
    let epsilon = node.scalar_like(mean, epsilon)?;
    let mean = node.apply("add", &[mean, epsilon])?;
    node.apply("rsqrt", &[mean])
}

fn mean_over(node: &mut Node<'_>, x: Value, axes: &[i64]) -> Result<Value, Problem> {
    let attrs = [("axis", axes.to_vec().into()), ("keepdims", true.into())];
    node.call("mean", &[x], &attrs)
}
