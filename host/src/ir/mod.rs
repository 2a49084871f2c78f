//! The IR as the host owns it: terms, function bodies, transactions, modules.
//!
//! Reading goes through the views of `tenon_plugin_api::ir`, the same that plugins use.

mod compact;
mod constant;
mod context;
mod flatten;
mod function;
mod module;
mod normalize;
mod scope_tree;
mod structural;
mod substitute;
mod transaction;

pub use constant::{Bytes, Constant};
pub use context::Cx;
pub(crate) use flatten::flatten;
pub use function::Function;
pub use module::{Module, PHASES};
pub use normalize::normalize;
pub(crate) use scope_tree::ScopeTree;
pub use substitute::{DimBindings, substitute};
pub use tenon_plugin_api::ir::*;
pub use transaction::{Transaction, TransactionError};
