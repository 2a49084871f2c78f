//! Code generators.

#[cfg(feature = "llvm")]
pub mod llvm;
