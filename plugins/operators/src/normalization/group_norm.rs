//! Group normalization (Wu and He 2018).
//!
//! ```ir
//! %y = nn.group_norm(%x, %gamma, %beta) { num_groups = 4 }    f32[n, 8, 32, 32], f32[8], f32[8]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::channels::channels;
use super::programs::{self, GroupAxes};
use super::statistics::Statistics;
use crate::kernel::groups::{Groups, standardize};
use crate::kernel::moves::wrap_axis;

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over all axes of a group of channels but the first; arguments x, gamma, beta, of which the last two have a number for each channel
#[op(name = "nn.group_norm", args = 3, pattern = "out_fusable")]
pub struct GroupNorm {
    /// groups of channels
    num_groups: i64,
    /// the axis of the channels
    #[attr(default = 1)]
    channel_axis: i64,
    /// keeps the root from zero
    #[attr(default = 1e-5)]
    epsilon: f64,
}

impl Operator for GroupNorm {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let groups = self.num_groups;
        if groups < 1 {
            return cx.bad_attr("num_groups", groups, "it must be positive");
        }
        let Some(channels) = channels(cx, self.channel_axis, 2)? else { return cx.arg(0) };
        match cx.value(channels) {
            Some(channels) if channels % groups != 0 => {
                cx.bad_attr("num_groups", groups, format!("it must divide the {channels} channels"))
            }
            _ => cx.arg(0),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let groups =
            Groups::of_channels(cx.arg(0)?.shape(), self.channel_axis, Some(self.num_groups));
        standardize(cx, &groups, self.epsilon)
    }
}

/// One group after the other.
#[rule(compute)]
fn program(op: &GroupNorm, program: &mut Program) {
    let data = program.input(0);
    let shape = data.shape();
    let groups = GroupAxes::of_channels(shape, op.channel_axis, |extent| {
        let groups = program.cx().dim(op.num_groups);
        [groups, program.cx().dim_floor_div(extent, groups)]
    });
    programs::standardize(program, &groups, op.epsilon);
}

/// Along the place of its channels, as long as the images stay in front.
#[rule(layout)]
fn layout(op: &GroupNorm, at: &mut Following<'_>) -> Option<Carried> {
    at.carried().filter(|x| x.order.first() == Some(&0))?;
    at.along_axis("channel_axis", op.channel_axis)
}

/// Mean and variance follow the data as well: see [`Statistics::gradient`].
#[rule(gradient)]
fn gradient(op: &GroupNorm, at: &mut Adjoint<'_>) -> Result<Grads> {
    let (_, dims) = at.tensor(at.arg(0))?;
    match op.statistics(at, dims) {
        Some(statistics) => Ok(statistics.gradient(at)),
        None => Err(OpError::Unsupported("the number of channels is not known".into())),
    }
}

/// Means, squares and products: see [`Statistics::written_out`].
#[rule(decompose.inference)]
fn decompose(op: &GroupNorm, at: &mut Site<'_>) -> Option<Expr> {
    let (_, dims) = at.tensor(at.arg(0))?;
    let channel = wrap_axis(op.channel_axis, dims.len()) as i64;
    op.statistics(at, dims)?.written_out(at, &[channel])
}

impl GroupNorm {
    /// What a mean of data of a shape is over: its channels apart into groups. `None` when there is no telling how many
    /// channels there are.
    fn statistics(&self, at: &impl Build, mut dims: Vec<Dim>) -> Option<Statistics> {
        let rank = dims.len() as i64;
        let channel = wrap_axis(self.channel_axis, dims.len());
        let channels = at.body().terms().dim_value(dims[channel])?;
        let each = channels / self.num_groups.max(1);
        dims[channel] = at.with_cx(|cx| cx.dim(self.num_groups));
        dims.insert(channel + 1, at.with_cx(|cx| cx.dim(each)));
        let channel = channel as i64;
        let inner = (1..=rank).filter(|&axis| axis != channel).collect();
        Some(Statistics { dims, inner, params: vec![channel, channel + 1], epsilon: self.epsilon })
    }
}

/// `GroupNormalization`: over groups of channels and the spatial axes.
#[rule(import.onnx, key = "GroupNormalization", since = 21)]
fn import(node: &mut Node<'_>) -> Outputs {
    node.ignore("stash_type");
    let args = node.all_inputs()?;
    let Some(groups) = node.int("num_groups")? else {
        return invalid("its attribute `num_groups` is missing");
    };
    let epsilon = node.float_or("epsilon", 1e-5)?;
    let attrs = [("num_groups", groups.into()), ("epsilon", epsilon.into())];
    Ok(vec![node.call("nn.group_norm", &args, &attrs)?])
}
