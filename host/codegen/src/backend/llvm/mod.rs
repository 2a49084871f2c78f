//! The LLVM engine room: from LLVM modules to code that runs or to a library on disk.
//!
//! This folder knows how to
//!
//! 1. name a processor and ask LLVM what it can do ([`machine`]),
//! 2. dress functions so that LLVM uses what the processor has ([`attributes`]),
//! 3. turn modules into objects, several at a time ([`units`]),
//! 4. run objects in this process ([`jit`], [`process`]).
//!
//! What the objects hold is made by [`codegen`].
//!
//! The same object serves 4 and a library ([`crate::object`]). That rests on two rules for whoever emits the modules:
//! constants are found through a table ([`CONSTANTS`](crate::backend::CONSTANTS)), wherever they lie, and nothing outside [`ALLOWED_UNDEFINED`](crate::object::symbols::ALLOWED_UNDEFINED) is called.
//!
//! Nothing here aborts or prints: LLVM's complaints come back as [`LlvmError`].

pub mod attributes;
pub mod codegen;
mod error;
mod externals;
mod fatal;
mod generator;
mod intrinsics;
pub mod jit;
pub mod machine;
mod probe;
pub mod process;
mod subtarget;
#[cfg(test)]
mod tests;
pub mod units;

pub use error::LlvmError;
pub use generator::Llvm;
pub use inkwell;
