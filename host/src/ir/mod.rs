//! The IR as the host owns it: terms, function bodies, transactions, modules.
//!
//! Reading goes through the views of `tenon_plugin_api::ir`, the same that plugins use.

mod compact;
mod constant;
mod context;
mod flatten;
mod flatten_type;
mod function;
mod module;
mod normalize;
pub mod op_names;
mod operators;
mod scope_tree;
mod structural;
mod substitute;
mod symbols;
mod texts;
mod transaction;
mod unbound;

pub use constant::Constant;
pub use context::Cx;
pub(crate) use flatten::flatten;
pub use flatten_type::flatten_type;
pub use function::Function;
pub use module::{Module, PHASES};
pub use normalize::normalize;
pub use operators::{
    Evaluation, NoOperators, OpBook, OpCode, OpDef, Origin, Rule, RuleCode, RuleQuestion, RuleReply,
};
pub(crate) use scope_tree::ScopeTree;
pub use substitute::{DimBindings, substitute};
pub(crate) use symbols::symbols_in;
pub use symbols::symbols_of;
pub use tenon_plugin_api::ir::*;
pub use tenon_plugin_api::op::UNKNOWN_EXTENT;
pub use transaction::{Transaction, TransactionError};
pub(crate) use unbound::Unbound;
