//! Images: their elements read between places.

mod kernels;
pub mod resize1d;
mod resize_onnx;
