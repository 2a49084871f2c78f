//! Code for NVIDIA's devices: tensor programs that are bound to blocks and threads become kernels, as text in PTX.
//!
//! LLVM's engine room makes it ([`crate::backend::llvm`]); what is different here is what there is: kernels and nothing else. No
//! object holds them, and nothing of them runs in this process.

mod error;
mod generator;
mod text;

pub(super) use generator::Nvptx;
