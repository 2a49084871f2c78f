//! ONNX: operators that are put together from ours, and what the rules for the others have in common.
//!
//! What is about one operator stands in its file.

mod affine_grid;
pub(crate) mod along_axis;
mod attention;
mod causal_conv;
mod center_crop_pad;
mod col2im;
mod constant;
mod conv_transpose;
mod deform_conv;
mod depth_to_space;
mod dft;
mod dynamic_quantize;
mod einsum;
mod elu;
pub(crate) mod fold;
mod gemm;
mod hard_sigmoid;
mod heads;
mod identity;
mod is_finite;
mod likelihood_loss;
mod linear_attention;
mod lp_pool;
mod mel_weights;
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
mod rotary_embedding;
mod same;
mod shape;
mod sign;
mod softplus;
mod softsign;
pub(crate) mod spatial;
pub(crate) mod steps;
mod sum;
mod swish;
mod thresholds;
mod tile;
mod triangle;
pub(crate) mod window;
mod window_functions;
mod xor;

pub(crate) use same::same;
