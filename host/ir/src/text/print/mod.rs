//! Writes modules as text.

mod function;
mod graph;
mod layout;
mod marks;
mod module;
mod open;
mod place;
mod prim;
mod scalar;
mod shape;
mod source;
mod terms;
mod vars;
mod weights;

pub use module::ModuleText;
pub(in crate::text) use shape::may_be_stmt;
pub(in crate::text) use terms::DIM_CALLS;

pub use module::{print_function, print_function_marking, print_module, print_type};
pub use weights::WeightsPolicy;
