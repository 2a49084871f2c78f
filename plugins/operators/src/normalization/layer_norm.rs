//! Layer normalization (Ba, Kiros and Hinton 2016).
//!
//! ```ir
//! %y = nn.layer_norm(%x, %gamma, %beta)    f32[n, 64], f32[64], f32[64]  =>  f32[n, 64]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::programs::{self, GroupAxes};
use super::statistics::Statistics;
use crate::kernel::groups::{Groups, standardize};
use crate::kernel::moves::wrap_axis;
use crate::onnx::moments::{Normal, last_axes, normalized};
use crate::onnx::steps::cast_to;

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over axes; arguments x, gamma, beta, of which the last two have these axes
#[op(name = "nn.layer_norm", args = 3, pattern = "out_fusable")]
pub struct LayerNorm {
    /// the axes of one mean, ascending
    #[attr(default = [-1])]
    axes: Vec<i64>,
    /// keeps the root from zero
    #[attr(default = 1e-5)]
    epsilon: f64,
}

impl Operator for LayerNorm {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        let given = &self.axes;
        let axes = match cx.tensor(0)?.dims {
            Some(dims) => Some((dims, cx.axes("axes", given, dims.len())?)),
            None => None,
        };
        let is_ascending = |axes: &[usize]| axes.windows(2).all(|pair| pair[0] < pair[1]);
        if given.is_empty() || axes.as_ref().is_some_and(|(_, axes)| !is_ascending(axes)) {
            return cx.bad_attr("axes", given, "one axis or more is expected, in ascending order");
        }
        for index in 1..3 {
            cx.check_same_dtype(index)?;
            let param = cx.tensor_of_rank(index, given.len())?.dims;
            let (Some((dims, axes)), Some(param)) = (&axes, param) else { continue };
            let normal: Vec<Dim> = axes.iter().map(|&axis| dims[axis]).collect();
            if normal.iter().zip(param).any(|(&a, &b)| cx.is_different(a, b)) {
                let what = format!("the axes of the data and argument {}", index + 1);
                return Err(cx.mismatch(&what, &normal, param));
            }
        }
        cx.arg(0)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let groups = Groups::along(cx.arg(0)?.shape(), &self.axes);
        standardize(cx, &groups, self.epsilon)
    }
}

/// One group after the other.
#[rule(compute)]
fn program(op: &LayerNorm, program: &mut Program) {
    let data = program.input(0);
    let shape = data.shape();
    let groups = GroupAxes::along(shape, &op.axes);
    programs::standardize(program, &groups, op.epsilon);
}

/// Along the places of its axes.
#[rule(layout)]
fn layout(op: &LayerNorm, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axes("axes", &op.axes)
}

/// Mean and variance follow the data as well: see [`Statistics::gradient`].
#[rule(gradient)]
fn gradient(op: &LayerNorm, at: &mut Adjoint<'_>) -> Result<Grads> {
    let (_, dims) = at.tensor(at.arg(0))?;
    Ok(op.statistics(dims).gradient(at))
}

/// Means, squares and products: see [`Statistics::written_out`].
#[rule(decompose.inference)]
fn decompose(op: &LayerNorm, at: &mut Site<'_>) -> Option<Expr> {
    let (_, dims) = at.tensor(at.arg(0))?;
    let statistics = op.statistics(dims);
    statistics.written_out(at, &statistics.params)
}

impl LayerNorm {
    /// What a mean of data of a shape is over.
    fn statistics(&self, dims: Vec<Dim>) -> Statistics {
        let axes: Vec<i64> =
            self.axes.iter().map(|&axis| wrap_axis(axis, dims.len()) as i64).collect();
        Statistics { dims, inner: axes.clone(), params: axes, epsilon: self.epsilon }
    }
}

/// `LayerNormalization`: over the axes from one on. Where mean and deviation are asked for as well, or scale and
/// shift are broadcast, it is written out. Models of opsets before 17 have it as onnxruntime writes it.
#[rule(import.onnx, key = "LayerNormalization")]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let axes = last_axes(node, x)?;
    let epsilon = node.float_or("epsilon", 1e-5)?;
    let (scale, shift) = (node.input(1)?, node.optional(2));
    let normal = node.dims(x)?[axes[0] as usize..].to_vec();
    let shift_or_zeros = match shift {
        Some(shift) => Some(shift),
        None => zeros_like(node, scale)?,
    };
    if let Some(shift) = shift_or_zeros
        && [node.dims(scale)?, node.dims(shift)?] == [&normal[..]; 2]
        && node.output_count() == 1
    {
        let attrs = [("axes", axes.into()), ("epsilon", epsilon.into())];
        return Ok(vec![node.call("nn.layer_norm", &[x, scale, shift], &attrs)?]);
    }
    // Short floats are widened until they are normal; mean and deviation are not made short again.
    let dtype = node.dtype(x)?;
    let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
    let x = cast_to(node, x, wide)?;
    let Normal { y, mean, inverse } = normalized(node, x, &axes, epsilon)?;
    let mut y = cast_to(node, y, dtype)?;
    y = node.apply("multiply", &[y, scale])?;
    if let Some(shift) = shift {
        y = node.apply("add", &[y, shift])?;
    }
    Ok(vec![y, cast_to(node, mean, DType::F32)?, cast_to(node, inverse, DType::F32)?])
}

/// Zeros of the type of a tensor; `None` when its extents are not known.
fn zeros_like(node: &mut Node<'_>, like: Value) -> Result<Option<Value>, Problem> {
    let dims = node.dims(like)?;
    let Some(shape) =
        dims.iter().map(|&dim| node.terms().dim_value(dim)).collect::<Option<Vec<_>>>()
    else {
        return Ok(None);
    };
    let dtype = node.dtype(like)?;
    let count = shape.iter().map(|&extent| extent as u64).product();
    let bytes = dtype.bytes(count).unwrap_or(0) as usize;
    node.constant(dtype, &shape, &vec![0; bytes]).map(Some)
}
