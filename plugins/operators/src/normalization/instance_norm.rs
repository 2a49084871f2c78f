//! Instance normalization (Ulyanov, Vedaldi and Lempitsky 2016).
//!
//! ```ir
//! %y = nn.instance_norm(%x, %gamma, %beta)    f32[n, 8, 32, 32], f32[8], f32[8]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::channels::channels;
use crate::kernel::groups::{Groups, standardize};

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

/// Along the place of its channels, as long as the images stay in front.
#[rule(layout)]
fn layout(op: &InstanceNorm, at: &mut Following<'_>) -> Option<Carried> {
    at.carried().filter(|x| x.order.first() == Some(&0))?;
    at.along_axis("channel_axis", op.channel_axis)
}
