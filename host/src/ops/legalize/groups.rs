//! What a normalization by the tensor's own statistics looks at: groups of elements that have a mean and a
//! variance, or a length, of their own.
//!
//! ```text
//! nn.layer_norm      x[2, 3, 4], axes = [2]            [2, 3, 4]       groups of the last axis
//! nn.group_norm      x[2, 6, 5, 5], num_groups = 3     [2, 3, 2, 5, 5] groups of all axes but the first two
//! nn.instance_norm   x[2, 6, 5, 5]                     [2, 6, 1, 5, 5] the same
//! nn.l2_normalize    x[2, 3, 4], axis = [1]            [2, 3, 4]       groups of the axis in the middle
//! ```

use crate::ops::{OpAttrs, OpError, OpSchema};

/// The groups of a call, as a shape of which each axis lies within the groups or counts them. It is that of the
/// data, with the axis of the channels divided into groups and the channels of one.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// The shape.
    pub(crate) shape: Vec<i64>,
    /// Whether each of its axes lies within the groups.
    pub(crate) is_inner: Vec<bool>,
    /// The axes that scale and shift run over.
    pub(crate) params: Vec<usize>,
}

impl Groups {
    /// The groups of a call of `op` on data of a shape, whose type was inferred.
    pub(crate) fn of(op: &OpSchema, attrs: OpAttrs<'_>, shape: &[i64]) -> Result<Self, OpError> {
        let rank = shape.len() as i64;
        let wrap = |axis: i64| axis.rem_euclid(rank.max(1)) as usize;
        let along = |axes: Vec<i64>| {
            let axes: Vec<usize> = axes.into_iter().map(wrap).collect();
            let is_inner = (0..shape.len()).map(|axis| axes.contains(&axis)).collect();
            Self { shape: shape.to_vec(), is_inner, params: axes }
        };
        match op.name {
            "nn.layer_norm" => Ok(along(attrs.ints("axes")?)),
            "nn.l2_normalize" => Ok(Self { params: Vec::new(), ..along(attrs.ints("axis")?) }),
            _ => {
                let channel = wrap(attrs.int("channel_axis")?);
                let groups = match op.attr("num_groups") {
                    Some(_) => attrs.int("num_groups")?,
                    None => shape[channel],
                };
                let mut split = shape.to_vec();
                split[channel] = groups;
                split.insert(channel + 1, shape[channel] / groups.max(1));
                let is_inner = (0..split.len()).map(|axis| axis != 0 && axis != channel).collect();
                Ok(Self { shape: split, is_inner, params: vec![channel, channel + 1] })
            }
        }
    }

    /// The numbers of the axes that lie within the groups, or that count them.
    pub(crate) fn axes(&self, inner: bool) -> Vec<usize> {
        (0..self.shape.len()).filter(|&axis| self.is_inner[axis] == inner).collect()
    }
}
