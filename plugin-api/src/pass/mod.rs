//! What a pass is given, and what it gives back.

mod context;
mod error;
mod function;
mod rewriter;

pub use context::{OpInfo, OpPattern, PassContext};
pub use error::{PassError, Result};
pub use function::{Function, Module, PrimFunc};
pub use rewriter::Rewriter;
