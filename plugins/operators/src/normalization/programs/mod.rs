//! The programs of normalizations by the tensor's own statistics.

mod group_axes;
pub(super) mod lrn;
pub(super) mod softmax;
mod statistics;

pub(super) use group_axes::GroupAxes;
pub(super) use statistics::{l2_normalize, standardize};
