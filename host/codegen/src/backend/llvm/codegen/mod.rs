//! From tensor programs to LLVM modules.
//!
//! A program becomes one function ([`kernel`]). Its statements are emitted from an explicit stack
//! ([`statement`], [`parallel`]), expressions from the leaves up ([`expression`]); what an operation
//! is in instructions stands in `arithmetic`, `convert`, `intrinsic`, `choose` and `rounding`, what
//! an element of a buffer is in `access`, and in `masked` under a condition of several lanes. `value` says what lives in registers, `range` what is
//! known about integers, `dim` what sizes are that a call says, `scratch` where buffers lie, and `assembler` is the layer over inkwell.
//!
//! Loops must come as they shall run: unrolling and vectorizing are passes.
//!
//! [`device`] is the same for a program that the threads of a device run.
//!
//! [`entry`] has the functions that run whole models by calling programs, with what `interface` checks, and
//! [`front`] what a library exports around them, of code for several processors by way of [`processors`].

mod access;
mod actions;
mod arena;
mod arithmetic;
mod assembler;
mod callees;
mod check;
mod choose;
mod constants;
mod convert;
mod device;
mod dim;
mod empty;
mod entry;
mod error;
mod expression;
mod external;
mod frame;
mod front;
mod interface;
mod intrinsic;
mod kernel;
mod masked;
mod parallel;
mod processors;
mod range;
mod region;
mod repeat;
mod rounding;
mod scratch;
mod statement;
mod streams;
mod taking;
#[cfg(test)]
mod tests;
mod tile;
mod value;
mod window;

pub use constants::build_constants;
pub use device::{build_device_kernel, launch_shape};
pub use entry::build_code;
pub use front::build_front;
pub use kernel::{build_kernel, pipeline_for, scratch_of};
