//! What compiled code meets at run time: a library that is opened, tensors, threads.
//!
//! The `repr(C)` types here ([`dlpack`], [`parallel::RawParallel`], [`functions::RawLibrary`]) are the
//! border to generated code and to the users of exported libraries; their layouts are asserted.
//! None of it needs LLVM: [`model::Model`] runs a library wherever it was compiled.

pub mod arena;
mod arrays;
pub mod cpu;
pub mod describe;
pub mod device;
pub mod dlpack;
pub mod functions;
pub mod io;
pub mod library;
pub mod memory;
pub mod model;
pub mod parallel;
pub mod profile;
pub mod signature;
pub mod status;
mod sync;
pub mod weights;

pub use arrays::{dtype_of, from_array, npy_type, to_array};
