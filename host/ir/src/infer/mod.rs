//! Type inference: fills in the type of every node of a function.
//!
//! One sweep in ascending order of the nodes, in which operands come first. A variable that a `let` binds
//! has the type of its value. Everything is inferred anew from the operands, so types that a pass left
//! behind do not matter; what is declared and checked are parameters and results of functions. Of a text
//! ([`infer_written`]) all types that stand in it are. Linear, and without recursion.

mod calls;
mod devices;
mod error;
mod join;
mod module;
mod signature;
mod sweep;
mod written;

pub use calls::KnownCalls;
pub use error::{InferError, InferProblem};
pub use join::fits;
pub use module::{infer_changed, infer_module};
pub use signature::{instantiate, signature};
pub use sweep::infer_expr;
pub use sweep::{Signatures, infer, infer_node};
pub use written::infer_written;
