//! Writes modules as text.

mod graph;
mod layout;
mod module;
mod node;
mod open;
mod shape;
mod terms;
mod vars;
mod weights;

pub(in crate::text) use terms::DIM_CALLS;

pub use module::{print_function, print_module, print_type};
pub use weights::WeightsPolicy;
