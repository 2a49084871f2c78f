//! Normalizations.

mod along_axis;
pub mod batch_norm;
pub mod bias_add;
mod channels;
pub mod group_norm;
pub mod instance_norm;
pub mod l2_normalize;
pub mod layer_norm;
pub mod log_softmax;
pub mod lrn;
mod per_channel;
mod programs;
pub mod softmax;
mod statistics;
