//! Pooling over two spatial axes.

pub mod avg_pool2d;
mod by_axes;
pub mod global_avg_pool2d;
pub mod global_max_pool2d;
mod layout;
pub mod max_pool2d;
pub mod max_pool_indices;
pub mod max_unpool;
pub(crate) mod programs;
mod taps;
mod windows;
