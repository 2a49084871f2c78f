//! The programs of normalizations by the tensor's own statistics.

mod group_axes;
pub(super) mod lrn;
mod lrn_fixed;
pub(super) mod softmax;
mod statistics;

pub(super) use group_axes::GroupAxes;
pub(super) use lrn_fixed::Lrn as LrnFixed;
pub(super) use statistics::{l2_normalize, standardize};
