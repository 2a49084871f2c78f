//! Tenon's own operators. Each is one file: what it takes, the type of a call, what it means.

pub mod bits;
pub mod broadcast;
pub mod device;
pub mod elementwise;
pub mod found;
pub mod image;
mod kernel;
pub mod linalg;
pub mod movement;
pub mod normalization;
mod onnx;
pub mod pooling;
mod precision;
pub mod product;
mod program;
pub mod random;
pub mod recurrence;
pub mod reduction;
pub mod scan;
pub mod shape;
pub mod storage;
pub mod trees;

tenon_plugin_api::plugin! {
    id = "tenon.operators",
    summary = "Tenon's own operators",
    license = "Apache-2.0 OR MIT"
}
