//! ONNX: operators that are put together from ours, and what the rules for the others have in common.
//!
//! What is about one operator stands in its file.

pub(crate) mod along_axis;
mod constant;
mod depth_to_space;
mod elu;
pub(crate) mod fold;
mod gemm;
mod hard_sigmoid;
mod identity;
mod is_finite;
pub(crate) mod moments;
mod norms;
mod one_hot;
pub(crate) mod pool;
mod prelu;
mod quantize;
mod range;
mod reciprocal;
pub(crate) mod reduce;
mod remainder;
mod same;
mod shape;
mod sign;
mod softplus;
mod softsign;
pub(crate) mod steps;
mod sum;
mod swish;
mod thresholds;
mod tile;
mod triangle;
pub(crate) mod window;
mod xor;

pub(crate) use same::same;
