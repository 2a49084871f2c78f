//! What a normalization by the tensor's own statistics looks at: groups of elements that have a mean and a variance, or a
//! length, of their own.
//!
//! ```text
//! nn.layer_norm      x[2, 3, 4], axes = [2]            [2, 3, 4]       groups of the last axis
//! nn.group_norm      x[2, 6, 5, 5], num_groups = 3     [2, 3, 2, 5, 5] groups of all axes but the first two
//! nn.instance_norm   x[2, 6, 5, 5]                     [2, 6, 1, 5, 5] the same
//! nn.l2_normalize    x[2, 3, 4], axis = [1]            [2, 3, 4]       groups of the axis in the middle
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_float;

use super::moves::{permute, wrap_axis};
use super::parallel::fill;

/// The groups of a call, as a shape of which each axis lies within the groups or counts them.
pub(crate) struct Groups {
    /// The shape.
    shape: Vec<usize>,
    /// Whether each of its axes lies within the groups.
    is_inner: Vec<bool>,
    /// The axes that scale and shift run over.
    params: Vec<usize>,
}

impl Groups {
    /// Groups of the elements along axes. Scale and shift run over these.
    pub(crate) fn along(shape: &[usize], axes: &[i64]) -> Self {
        let axes: Vec<usize> = axes.iter().map(|&axis| wrap_axis(axis, shape.len())).collect();
        let is_inner = (0..shape.len()).map(|axis| axes.contains(&axis)).collect();
        Self { shape: shape.to_vec(), is_inner, params: axes }
    }

    /// So many groups of channels; each channel by itself where `count` is `None`. The axis of the channels is divided
    /// into groups and the channels of one.
    pub(crate) fn of_channels(shape: &[usize], channel_axis: i64, count: Option<i64>) -> Self {
        let channel = wrap_axis(channel_axis, shape.len());
        let count = count.map_or(shape[channel], |count| count as usize);
        let mut split = shape.to_vec();
        split[channel] = count;
        split.insert(channel + 1, shape[channel] / count.max(1));
        let is_inner = (0..split.len()).map(|axis| axis != 0 && axis != channel).collect();
        Self { shape: split, is_inner, params: vec![channel, channel + 1] }
    }

    fn axes(&self, inner: bool) -> Vec<usize> {
        (0..self.shape.len()).filter(|&axis| self.is_inner[axis] == inner).collect()
    }
}

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance of each group.
pub(crate) fn standardize(cx: &EvalCx<'_>, groups: &Groups, epsilon: f64) -> Result<Vec<Tensor>> {
    let [gamma, beta] = [numbers(cx.arg(1)?)?, numbers(cx.arg(2)?)?];
    by_group(cx, groups, |group, params| {
        let count = group.len() as f64;
        let mean = group.iter().sum::<f64>() / count;
        let variance = group.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let deviation = (variance + epsilon).sqrt();
        for (x, param) in group.iter_mut().zip(params) {
            *x = (*x - mean) / deviation * gamma[param] + beta[param];
        }
    })
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    with_float!(tensor.dtype(), T => {
        Ok(tensor.elements::<T>().iter().map(|x| x.to_f64()).collect())
    })
}

/// Puts each group of the first argument through a function, with the number in scale and shift of each element.
pub(crate) fn by_group(
    cx: &EvalCx<'_>,
    groups: &Groups,
    f: impl Fn(&mut [f64], &mut dyn Iterator<Item = usize>) + Sync,
) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let shape = &groups.shape;
    let (outer, inner) = (groups.axes(false), groups.axes(true));
    let order: Vec<usize> = outer.iter().chain(&inner).copied().collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);

    // How far one step along each axis leads in scale and shift.
    let mut steps = vec![0; shape.len()];
    let mut step = 1;
    for &axis in groups.params.iter().rev() {
        steps[axis] = step;
        step *= shape[axis];
    }
    let place = |number: usize, axes: &[usize]| {
        let mut rest = number;
        axes.iter().rev().fold(0, |place, &axis| {
            let index = rest % shape[axis];
            rest /= shape[axis];
            place + index * steps[axis]
        })
    };
    let length: usize = inner.iter().map(|&axis| shape[axis]).product();
    let places: Vec<usize> = (0..length).map(|number| place(number, &inner)).collect();

    let moved = permute(&tensor.reshaped(shape.clone()), &order)?;
    with_float!(tensor.dtype(), T => {
        let x = moved.elements::<T>();
        let mut out = vec![T::default(); x.len()];
        fill(&mut out, length, &|number, out| {
            let mut group: Vec<f64> =
                x[number * length..][..length].iter().map(|x| x.to_f64()).collect();
            let first = place(number, &outer);
            f(&mut group, &mut places.iter().map(|place| first + place));
            out.iter_mut().zip(group).for_each(|(out, x)| *out = T::from_f64(x));
        });
        let out = Tensor::from_vec_as(tensor.dtype(), moved.shape().to_vec(), out);
        Ok(vec![permute(&out, &back)?.reshaped(tensor.shape().to_vec())])
    })
}
