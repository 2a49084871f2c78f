//! Instance normalization (Ulyanov, Vedaldi and Lempitsky 2016).
//!
//! ```ir
//! %y = nn.instance_norm(%x, %gamma, %beta)    f32[n, 8, 32, 32], f32[8], f32[8]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::channels::channels;
use super::programs::{self, GroupAxes};
use super::statistics::Statistics;
use crate::kernel::groups::{Groups, standardize};
use crate::kernel::moves::wrap_axis;

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over all axes of a channel but the first; arguments x, gamma, beta, of which the last two have a number for each channel
#[op(name = "nn.instance_norm", args = 3, pattern = "out_fusable")]
pub struct InstanceNorm {
    /// the axis of the channels
    #[attr(default = 1)]
    channel_axis: i64,
    /// keeps the root from zero
    #[attr(default = 1e-5)]
    epsilon: f64,
}

impl Operator for InstanceNorm {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        channels(cx, self.channel_axis, 3)?;
        cx.arg(0)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let groups = Groups::of_channels(cx.arg(0)?.shape(), self.channel_axis, None);
        standardize(cx, &groups, self.epsilon)
    }
}

/// One group after the other.
#[rule(compute)]
fn program(op: &InstanceNorm, program: &mut Program) {
    let data = program.input(0);
    let shape = data.shape();
    let groups =
        GroupAxes::of_channels(shape, op.channel_axis, |extent| [extent, program.cx().dim(1)]);
    programs::standardize(program, &groups, op.epsilon);
}

/// Along the place of its channels, as long as the images stay in front.
#[rule(layout)]
fn layout(op: &InstanceNorm, at: &mut Following<'_>) -> Option<Carried> {
    at.carried().filter(|x| x.order.first() == Some(&0))?;
    at.along_axis("channel_axis", op.channel_axis)
}

/// Mean and variance follow the data as well: see [`Statistics::gradient`].
#[rule(gradient)]
fn gradient(op: &InstanceNorm, at: &mut Adjoint<'_>) -> Result<Grads> {
    let (_, dims) = at.tensor(at.arg(0))?;
    Ok(op.statistics(dims).gradient(at))
}

/// Means, squares and products: see [`Statistics::written_out`].
#[rule(decompose.inference)]
fn decompose(op: &InstanceNorm, at: &mut Site<'_>) -> Option<Expr> {
    let (_, dims) = at.tensor(at.arg(0))?;
    let statistics = op.statistics(dims);
    statistics.written_out(at, &statistics.params)
}

impl InstanceNorm {
    /// What a mean of data of a shape is over.
    fn statistics(&self, dims: Vec<Dim>) -> Statistics {
        let channel = wrap_axis(self.channel_axis, dims.len()) as i64;
        let inner = (1..dims.len() as i64).filter(|&axis| axis != channel).collect();
        Statistics { dims, inner, params: vec![channel], epsilon: self.epsilon }
    }
}

/// `InstanceNormalization`: over the spatial axes of each channel.
#[rule(import.onnx, key = "InstanceNormalization", since = 6)]
fn import(node: &mut Node<'_>) -> Outputs {
    let args = node.all_inputs()?;
    let epsilon = node.float_or("epsilon", 1e-5)?;
    Ok(vec![node.call("nn.instance_norm", &args, &[("epsilon", epsilon.into())])?])
}
