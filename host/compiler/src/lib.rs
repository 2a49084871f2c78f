//! The compiler: sessions, the registry of plugins and the border to them, the pass manager, importers, executables.
//!
//! A program that compiles models uses this crate alone: what it gives and takes, the IR, diagnostics and arrays, is named here
//! as well. One that only runs what was compiled uses [`runtime`].

pub mod border;
pub mod cache;
pub mod compare;
pub mod conformance;
#[cfg(feature = "cuda")]
pub mod device;
pub mod executable;
mod external;
pub mod onnx;
pub mod ops;
pub mod passes;
pub mod reduce;
pub mod registry;
mod services;
pub mod session;
pub mod testing;
pub mod text;
pub mod tune;
pub mod validate;

pub use tenon_codegen::{backend, object, plan, target};
pub use tenon_eval as eval;
pub use tenon_ir as ir;
pub use tenon_ir::{check, diagnostics, infer, printable, suggest};
pub use tenon_runtime as runtime;
pub use tenon_runtime::io;

use tenon_ir::parallel;

#[cfg(test)]
#[path = "../../tests/support/operators.rs"]
mod test_operators;
