//! Products: of matrices, and of windows of data with kernels.

pub mod conv2d;
pub mod dense;
mod dots;
pub mod matmul;
mod taps;
