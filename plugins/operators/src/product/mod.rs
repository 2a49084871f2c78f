//! Products: of matrices, and of windows of data with kernels.

pub mod byte_dots;
pub mod conv2d;
pub mod conv2d_winograd;
pub mod conv3d;
mod cook_toom;
mod cost;
pub mod dense;
mod dots;
pub mod matmul;
mod programs;
mod taps;
mod transposed;
pub mod winograd_weights;
