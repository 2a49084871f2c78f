//! Products: of matrices, and of windows of data with kernels.

pub mod bf16_dots;
pub mod byte_conv2d;
pub mod byte_conv3d;
pub mod byte_dots;
pub mod conv2d;
pub mod conv2d_winograd;
pub mod conv3d;
mod convolution;
mod cook_toom;
mod cost;
pub mod dense;
pub mod dequantize;
mod dots;
mod factors;
pub mod matmul;
mod programs;
pub mod quantized_dense;
mod taps;
mod transposed;
pub mod winograd_weights;
