//! The programs of normalizations by the tensor's own statistics: for any extents, and in vectors where the extents are known.

mod group_axes;
pub(super) mod lrn;
mod lrn_fixed;
pub(super) mod softmax;
mod statistics;
mod statistics_fixed;

pub(super) use group_axes::GroupAxes;
pub(super) use lrn_fixed::Lrn as LrnFixed;
pub(super) use statistics::{l2_normalize, standardize};
pub(super) use statistics_fixed::{
    l2_normalize as l2_normalize_fixed, standardize as standardize_fixed,
};
