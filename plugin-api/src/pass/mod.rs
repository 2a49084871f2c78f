//! What a pass is given, and what it gives back.

mod calls;
mod context;
mod error;
mod function;
mod rewriter;
mod template;

pub use calls::{Call, Uses};
pub use context::{OpInfo, OpPattern, PassContext};
pub use error::{PassError, Result};
pub use function::{Function, Module, PrimFunc};
pub use rewriter::Rewriter;
pub use template::Template;
