//! Normalization by statistics that are known (Ioffe and Szegedy 2015).
//!
//! ```ir
//! %y = nn.batch_norm(%x, %gamma, %beta, %mean, %var)    f32[n, 8, 32, 32], f32[8], f32[8], f32[8], f32[8]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::per_channel::{beside_channels, per_channel};
use crate::kernel::moves::wrap_axis;
use crate::kernel::parallel::fill;
use crate::onnx::steps::{self, cast_to};
use crate::program::index::axis_of;

/// (x - mean) / sqrt(var + epsilon) * gamma + beta, for each channel; arguments x, gamma, beta, mean, var
#[op(name = "nn.batch_norm", args = 5, pattern = "broadcast")]
pub struct BatchNorm {
    /// keeps the root from zero
    #[attr(default = 1e-5)]
    epsilon: f64,
    /// the axis of the channels
    #[attr(default = 1)]
    axis: i64,
}

impl Operator for BatchNorm {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        per_channel(cx, self.axis, 1..5)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let axis = wrap_axis(self.axis, shape.len());
        let inner: usize = shape[axis + 1..].iter().product();
        with_float!(dtype, T => {
            let param = |index| -> Result<Vec<f64>> {
                Ok(cx.arg(index)?.elements::<T>().iter().map(|x| x.to_f64()).collect())
            };
            let (gamma, beta) = (param(1)?, param(2)?);
            let (mean, var) = (param(3)?, param(4)?);
            let x = cx.arg(0)?.elements::<T>();
            let mut out = vec![T::default(); x.len()];
            fill(&mut out, inner, &|row, out| {
                let channel = row % gamma.len();
                let scale = gamma[channel] / (var[channel] + self.epsilon).sqrt();
                for (out, x) in out.iter_mut().zip(&x[row * inner..]) {
                    *out = T::from_f64((x.to_f64() - mean[channel]) * scale + beta[channel]);
                }
            });
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &BatchNorm, program: &mut Program) -> Result<()> {
    let out = program.output(0);
    let axis = axis_of(op.axis, out.shape().len())?;
    let [x, gamma, beta, mean, variance] = [0, 1, 2, 3, 4].map(|index| program.input(index));
    program.set(&out, |i| {
        let channel = [i[axis]];
        let scale = gamma.wide(&channel) / (variance.wide(&channel) + op.epsilon).call("sqrt");
        (x.wide(i) - mean.wide(&channel)) * scale + beta.wide(&channel)
    });
    Ok(())
}

/// Along the place of its channels.
#[rule(layout)]
fn layout(op: &BatchNorm, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axis("axis", op.axis)
}

/// With `r = rsqrt(var + epsilon)` and sums over all but the channels: to x `g gamma r`, to gamma
/// `sum(g (x - mean)) r`, to beta `sum(g)`, to the mean `-sum(g) gamma r`, to the variance
/// `-sum(g (x - mean)) gamma r^3 / 2`.
#[rule(gradient)]
fn gradient(op: &BatchNorm, at: &mut Adjoint<'_>) -> Result<Grads> {
    let [x, gamma, _, mean, variance] = [0, 1, 2, 3, 4].map(|index| at.arg(index));
    let (others, behind) = beside_channels(at.rank(x)?, op.axis);
    let g = at.grad();
    let spread = at.plus(variance, op.epsilon);
    let r = at.apply("rsqrt", &[spread]);
    let scale = at.mul(gamma, r);
    let scale_of_x = at.expand_dims(scale, &behind);
    let mean = at.expand_dims(mean, &behind);
    let centered = at.sub(x, mean);
    let product = at.mul(g, centered);
    let moment = at.reduce("sum", product, &others, false);
    let total = at.reduce("sum", g, &others, false);

    let grad_x = at.mul(g, scale_of_x);
    let grad_gamma = at.mul(moment, r);
    let shift = at.mul(total, scale);
    let grad_mean = at.neg(shift);
    let square = at.mul(r, r);
    let slope = at.mul(scale, square);
    let product = at.mul(moment, slope);
    let grad_variance = at.scale(product, -0.5);
    Ok(Grads::of([grad_x, grad_gamma, total, grad_mean, grad_variance]))
}

/// Scale and shift for each channel: with statistics that are constants, both fold into constants.
#[rule(decompose.inference)]
fn scaled(op: &BatchNorm, at: &mut Site<'_>) -> Option<Expr> {
    let [x, gamma, beta, mean, variance] = at.args()?;
    let (_, behind) = beside_channels(at.rank(x)? as i64, op.axis);
    let spread = at.plus(variance, op.epsilon);
    let inverse = at.apply("rsqrt", &[spread]);
    let scale = at.mul(gamma, inverse);
    let offset = at.mul(mean, scale);
    let shift = at.sub(beta, offset);
    let scale = at.expand_dims(scale, &behind);
    let shift = at.expand_dims(shift, &behind);
    let scaled = at.mul(x, scale);
    Some(at.add(scaled, shift))
}

/// By mean and variance of the batch itself; algorithm 1 of the paper. The statistics that are given are not read.
#[rule(decompose.training)]
fn normalized(op: &BatchNorm, at: &mut Site<'_>) -> Option<Expr> {
    let [x, gamma, beta, ..] = at.args::<5>()?;
    let (others, behind) = beside_channels(at.rank(x)? as i64, op.axis);
    let mean = at.reduce("mean", x, &others, true);
    let centered = at.sub(x, mean);
    let square = at.mul(centered, centered);
    let variance = at.reduce("mean", square, &others, true);
    let spread = at.plus(variance, op.epsilon);
    let inverse = at.apply("rsqrt", &[spread]);
    let normal = at.mul(centered, inverse);
    let gamma = at.expand_dims(gamma, &behind);
    let beta = at.expand_dims(beta, &behind);
    let scaled = at.mul(normal, gamma);
    Some(at.add(scaled, beta))
}

/// `BatchNormalization` with given mean and variance.
#[rule(import.onnx, key = "BatchNormalization", since = 7)]
fn import(node: &mut Node<'_>) -> Outputs {
    node.check_arity(5, 5)?;
    let momentum = node.float_or("momentum", 0.9)?;
    let is_training = node.flag("training_mode", false)?;
    if !node.flag("spatial", true)? {
        return unsupported("spatial = 0");
    }
    let mut args = node.all_inputs()?;
    let dtype = node.dtype(args[0])?;
    for arg in &mut args[1..] {
        *arg = cast_to(node, *arg, dtype)?;
    }
    let epsilon = node.float_or("epsilon", 1e-5)?;
    if !is_training {
        return Ok(vec![node.call("nn.batch_norm", &args, &[("epsilon", epsilon.into())])?]);
    }
    let own = statistics(node, args[0])?;
    let held = std::mem::replace(&mut args[3], own[0]);
    let mean = running(node, momentum, held, own[0])?;
    let held = std::mem::replace(&mut args[4], own[1]);
    let variance = running(node, momentum, held, own[1])?;
    let y = node.call("nn.batch_norm", &args, &[("epsilon", epsilon.into())])?;
    Ok(vec![y, mean, variance])
}

/// Mean and variance of each channel of the batch.
fn statistics(node: &mut Node<'_>, x: Value) -> Result<[Value; 2], Problem> {
    let rank = node.dims(x)?.len() as i64;
    let axes: Vec<i64> = (0..rank).filter(|&axis| axis != 1).collect();
    let mean = |node: &mut Node<'_>, x: Value, keepdims: bool| {
        node.call("mean", &[x], &[("axis", axes.clone().into()), ("keepdims", keepdims.into())])
    };
    let center = mean(node, x, true)?;
    let distance = node.apply("subtract", &[x, center])?;
    let square = node.apply("multiply", &[distance, distance])?;
    Ok([mean(node, x, false)?, mean(node, square, false)?])
}

/// What is remembered of the statistics of batches, with that of one more.
fn running(node: &mut Node<'_>, momentum: f64, held: Value, own: Value) -> Result<Value, Problem> {
    let held = steps::scaled(node, held, momentum)?;
    let own = steps::scaled(node, own, 1.0 - momentum)?;
    node.apply("add", &[held, own])
}
