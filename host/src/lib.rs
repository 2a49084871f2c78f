//! The Tenon host: the IR, the registry of plugins, the pass manager and the lowering backends.

pub mod backend;
pub mod border;
pub mod cache;
pub mod check;
pub mod cli;
pub mod compare;
pub mod conformance;
#[cfg(feature = "cuda")]
pub mod device;
pub mod diagnostics;
pub mod eval;
pub mod executable;
mod external;
pub mod infer;
pub mod ir;
pub mod object;
pub mod onnx;
pub mod ops;
mod parallel;
pub mod passes;
pub mod plan;
mod printable;
pub mod reduce;
pub mod registry;
mod services;
pub mod session;
mod suggest;
pub mod target;
pub mod testing;
pub mod text;
pub mod tune;
pub mod validate;

pub use tenon_runtime as runtime;
pub use tenon_runtime::io;

#[cfg(test)]
#[path = "../tests/support/operators.rs"]
mod test_operators;
