//! What compiled code meets at run time: a library that is opened, tensors, threads.
//!
//! The `repr(C)` types here ([`dlpack`], [`parallel::RawParallel`]) are the border to generated
//! code and to the users of exported libraries; their layouts are asserted. None of it needs LLVM.

pub mod dlpack;
pub mod library;
pub mod parallel;
