//! Normalizations.

use crate::ir::DType;
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;

use super::cast::cast_to;
use super::scalar::scalar_like;
use super::shape::{product, reshape_to};

type Outputs = Result<Vec<Value>, Problem>;

/// `BatchNormalization` with given mean and variance.
pub(in crate::onnx::import) fn batch(cx: &mut NodeCx<'_, '_>) -> Outputs {
    cx.check_arity(5, 5)?;
    cx.ignore("momentum");
    if cx.flag("training_mode", false)? {
        return unsupported("training mode");
    }
    if !cx.flag("spatial", true)? {
        return unsupported("spatial = 0");
    }
    let mut args = cx.all_inputs()?;
    let dtype = cx.dtype(args[0])?;
    for arg in &mut args[1..] {
        *arg = cast_to(cx, *arg, dtype)?;
    }
    let epsilon = cx.float_or("epsilon", 1e-5)?;
    Ok(vec![cx.call("nn.batch_norm", &args, &[("epsilon", epsilon.into())])?])
}

/// `LRN`.
pub(in crate::onnx::import) fn lrn(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let Some(size) = cx.int("size")? else { return invalid("its attribute `size` is missing") };
    let attrs = [
        ("size", size.into()),
        ("alpha", cx.float_or("alpha", 1e-4)?.into()),
        ("beta", cx.float_or("beta", 0.75)?.into()),
        ("bias", cx.float_or("bias", 1.0)?.into()),
    ];
    Ok(vec![cx.call("nn.lrn", &[x], &attrs)?])
}

/// `Softmax` along one axis.
pub(in crate::onnx::import) fn softmax(cx: &mut NodeCx<'_, '_>) -> Outputs {
    along_axis(cx, "nn.softmax")
}

/// `LogSoftmax` along one axis.
pub(in crate::onnx::import) fn log_softmax(cx: &mut NodeCx<'_, '_>) -> Outputs {
    along_axis(cx, "nn.log_softmax")
}

fn along_axis(cx: &mut NodeCx<'_, '_>, op: &'static str) -> Outputs {
    let x = cx.input(0)?;
    let axis = cx.int_or("axis", -1)?;
    Ok(vec![cx.call(op, &[x], &[("axis", axis.into())])?])
}

/// `Softmax` before version 13.
pub(in crate::onnx::import) fn softmax_of_matrix(cx: &mut NodeCx<'_, '_>) -> Outputs {
    of_matrix(cx, "nn.softmax")
}

/// `LogSoftmax` before version 13.
pub(in crate::onnx::import) fn log_softmax_of_matrix(cx: &mut NodeCx<'_, '_>) -> Outputs {
    of_matrix(cx, "nn.log_softmax")
}

/// Along the rows of the matrix that the tensor is when it is flattened at the axis. Where all axes from
/// there on but one have extent 1, that is along this one.
fn of_matrix(cx: &mut NodeCx<'_, '_>, op: &'static str) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let axis = cx.axis(cx.int_or("axis", 1)?, dims.len())?;
    let is_long = |&axis: &usize| cx.terms().dim_value(dims[axis]) != Some(1);
    let long: Vec<usize> = (axis..dims.len()).filter(is_long).collect();
    if let [] | [_] = long.as_slice() {
        let axis = long.first().copied().unwrap_or(axis) as i64;
        return Ok(vec![cx.call(op, &[x], &[("axis", axis.into())])?]);
    }
    let matrix = [product(cx, &dims[..axis]), product(cx, &dims[axis..])];
    let matrix = reshape_to(cx, x, &matrix)?;
    let y = cx.call(op, &[matrix], &[("axis", (-1).into())])?;
    Ok(vec![reshape_to(cx, y, &dims)?])
}

/// `InstanceNormalization`: over the spatial axes of each channel.
pub(in crate::onnx::import) fn instance(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let args = cx.all_inputs()?;
    let epsilon = cx.float_or("epsilon", 1e-5)?;
    Ok(vec![cx.call("nn.instance_norm", &args, &[("epsilon", epsilon.into())])?])
}

/// `GroupNormalization`: over groups of channels and the spatial axes.
pub(in crate::onnx::import) fn group(cx: &mut NodeCx<'_, '_>) -> Outputs {
    cx.ignore("stash_type");
    let args = cx.all_inputs()?;
    let Some(groups) = cx.int("num_groups")? else {
        return invalid("its attribute `num_groups` is missing");
    };
    let epsilon = cx.float_or("epsilon", 1e-5)?;
    let attrs = [("num_groups", groups.into()), ("epsilon", epsilon.into())];
    Ok(vec![cx.call("nn.group_norm", &args, &attrs)?])
}

/// `LayerNormalization`: over the axes from one on. Where mean and deviation are asked for as well, or scale and
/// shift are broadcast, it is written out.
pub(in crate::onnx::import) fn layer(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let axes = last_axes(cx, x)?;
    let epsilon = cx.float_or("epsilon", 1e-5)?;
    let (scale, shift) = (cx.input(1)?, cx.optional(2));
    let normal = cx.dims(x)?[axes[0] as usize..].to_vec();
    let shift_or_zeros = match shift {
        Some(shift) => Some(shift),
        None => zeros_like(cx, scale)?,
    };
    if let Some(shift) = shift_or_zeros
        && [cx.dims(scale)?, cx.dims(shift)?] == [&normal[..]; 2]
        && cx.output_count == 1
    {
        let attrs = [("axes", axes.into()), ("epsilon", epsilon.into())];
        return Ok(vec![cx.call("nn.layer_norm", &[x, scale, shift], &attrs)?]);
    }
    let Normal { mut y, mean, inverse } = normalized(cx, x, &axes, epsilon)?;
    y = cx.apply("multiply", &[y, scale])?;
    if let Some(shift) = shift {
        y = cx.apply("add", &[y, shift])?;
    }
    Ok(vec![y, mean, inverse])
}

/// Zeros of the type of a tensor; `None` when its extents are not known.
fn zeros_like(cx: &mut NodeCx<'_, '_>, like: Value) -> Result<Option<Value>, Problem> {
    let dims = cx.dims(like)?;
    let Some(shape) = dims.iter().map(|&dim| cx.terms().dim_value(dim)).collect::<Option<Vec<_>>>()
    else {
        return Ok(None);
    };
    let dtype = cx.dtype(like)?;
    let count = shape.iter().map(|&extent| extent as u64).product();
    let bytes = dtype.bytes(count).unwrap_or(0) as usize;
    Ok(Some(cx.constant_of(dtype, &shape, vec![0; bytes])))
}

/// `RMSNormalization`: by the root of the mean of squares over the axes from one on.
pub(in crate::onnx::import) fn root_mean_square(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let axes = last_axes(cx, x)?;
    let epsilon = cx.float_or("epsilon", 1e-5)?;
    let inverse = inverse_root_mean_square(cx, x, &axes, epsilon)?;
    let y = cx.apply("multiply", &[x, inverse])?;
    let scale = cx.input(1)?;
    Ok(vec![cx.apply("multiply", &[y, scale])?])
}

/// `MeanVarianceNormalization`.
pub(in crate::onnx::import) fn mean_variance(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let axes = cx.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    Ok(vec![normalized(cx, x, &axes, 1e-9)?.y])
}

/// `LpNormalization`: by the sum of absolute values or the root of the sum of squares along an axis. Where
/// all are zero they stay zero.
pub(in crate::onnx::import) fn lp(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let axis = vec![cx.int_or("axis", -1)?];
    match cx.int_or("p", 2)? {
        1 => {
            let size = cx.apply("abs", &[x])?;
            let attrs = [("axis", axis.into()), ("keepdims", true.into())];
            let norm = cx.call("sum", &[size], &attrs)?;
            let zero = scalar_like(cx, x, 0.0)?;
            let is_zero = cx.apply("equal", &[norm, zero])?;
            let y = cx.apply("divide", &[x, norm])?;
            Ok(vec![cx.apply("where", &[is_zero, zero, y])?])
        }
        2 => {
            let least = match cx.dtype(x)? {
                DType::F64 => f64::MIN_POSITIVE,
                _ => f32::MIN_POSITIVE as f64,
            };
            let attrs = [("axis", axis.into()), ("epsilon", least.into())];
            Ok(vec![cx.call("nn.l2_normalize", &[x], &attrs)?])
        }
        p => invalid(format!("its attribute `p` is {p}, expected 1 or 2")),
    }
}

/// The axes of a normalization over the last ones; the arithmetic is that of float32 or wider.
fn last_axes(cx: &NodeCx<'_, '_>, x: Value) -> Result<Vec<i64>, Problem> {
    if cx.int_or("stash_type", 1)? != 1 {
        return unsupported("stash_type other than 1");
    }
    let rank = cx.dims(x)?.len();
    let axis = cx.axis(cx.int_or("axis", -1)?, rank)?;
    Ok((axis as i64..rank as i64).collect())
}

/// A tensor moved to mean 0 and scaled to variance 1.
struct Normal {
    y: Value,
    mean: Value,
    /// One over the standard deviation.
    inverse: Value,
}

fn normalized(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    axes: &[i64],
    epsilon: f64,
) -> Result<Normal, Problem> {
    let mean = mean_over(cx, x, axes)?;
    let centered = cx.apply("subtract", &[x, mean])?;
    let inverse = inverse_root_mean_square(cx, centered, axes, epsilon)?;
    let y = cx.apply("multiply", &[centered, inverse])?;
    Ok(Normal { y, mean, inverse })
}

fn inverse_root_mean_square(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    axes: &[i64],
    epsilon: f64,
) -> Result<Value, Problem> {
    let square = cx.apply("multiply", &[x, x])?;
    let mean = mean_over(cx, square, axes)?;
    let epsilon = scalar_like(cx, mean, epsilon)?;
    let mean = cx.apply("add", &[mean, epsilon])?;
    cx.apply("rsqrt", &[mean])
}

fn mean_over(cx: &mut NodeCx<'_, '_>, x: Value, axes: &[i64]) -> Result<Value, Problem> {
    let attrs = [("axis", axes.to_vec().into()), ("keepdims", true.into())];
    cx.call("mean", &[x], &attrs)
}
