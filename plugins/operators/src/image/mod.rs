//! Images: their elements read between places.

pub mod grid_sample;
mod kernels;
pub mod resize1d;
mod resize_onnx;
pub mod roi_align;
pub mod roi_pool;
