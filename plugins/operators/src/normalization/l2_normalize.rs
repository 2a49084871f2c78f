//! Normalization by the Euclidean length.
//!
//! ```ir
//! %y = nn.l2_normalize(%x) { axis = [1] }    f32[n, 64]  =>  f32[n, 64]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::kernel::groups::{Groups, by_group};

/// x / sqrt(max(sum of squares, epsilon)), with the sum over axes
#[op(name = "nn.l2_normalize", pattern = "out_fusable")]
pub struct L2Normalize {
    /// the axes that are summed over
    #[attr(default = [-1])]
    axis: Vec<i64>,
    /// the least sum of squares
    #[attr(default = 1e-12)]
    epsilon: f64,
}

impl Operator for L2Normalize {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        if let Some(dims) = cx.tensor(0)?.dims {
            cx.axes("axis", &self.axis, dims.len())?;
        }
        let epsilon = self.epsilon;
        match epsilon > 0.0 {
            true => cx.arg(0),
            false => cx.bad_attr("epsilon", epsilon, "it must be positive"),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let groups = Groups::along(cx.arg(0)?.shape(), &self.axis);
        by_group(cx, &groups, |group, _| {
            let length = group.iter().map(|x| x * x).sum::<f64>().max(self.epsilon).sqrt();
            group.iter_mut().for_each(|x| *x /= length);
        })
    }
}

/// Along the places of its axes.
#[rule(layout)]
fn layout(op: &L2Normalize, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axes("axis", &op.axis)
}
