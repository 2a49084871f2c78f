//! From tensor programs to LLVM modules.
//!
//! A program becomes one function ([`kernel`]). Its statements are emitted from an explicit stack
//! ([`statement`], [`parallel`]), expressions from the leaves up ([`expression`]); what an operation
//! is in instructions stands in `arithmetic`, `convert`, `intrinsic`, `choose` and `rounding`, what
//! an element of a buffer is in `access`. `value` says what lives in registers, `range` what is
//! known about integers, `scratch` where buffers lie, and `assembler` is the layer over inkwell.
//!
//! Loops must come as they shall run: unrolling and vectorizing are passes.

mod access;
mod arithmetic;
mod assembler;
mod choose;
mod convert;
mod error;
mod expression;
mod intrinsic;
mod kernel;
mod parallel;
mod range;
mod rounding;
mod scratch;
mod statement;
#[cfg(test)]
mod tests;
mod value;

pub use error::{CodegenError, Problem};
pub use kernel::{Kernel, build_kernel, pipeline_for, scratch_bytes};
