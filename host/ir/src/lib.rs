//! The IR as the host owns it: terms, function bodies, transactions, modules, and what is said of them: their text, the
//! relations of their types, what the checker demands, diagnostics.
//!
//! Reading goes through the views of `tenon_plugin_api::ir`, the same that plugins use. Nothing here opens a file or a
//! plugin: what operators there are is asked of an [`OpBook`].

pub mod check;
mod compact;
mod constant;
mod context;
pub mod diagnostics;
mod flatten;
mod flatten_type;
mod function;
pub mod infer;
mod module;
mod normalize;
pub mod op_names;
mod operators;
pub mod ops;
pub mod parallel;
pub mod printable;
mod scope_tree;
mod structural;
mod substitute;
pub mod suggest;
mod symbols;
pub mod text;
mod texts;
mod transaction;
mod unbound;

pub use constant::Constant;
pub use context::Cx;
pub use flatten::flatten;
pub use flatten_type::flatten_type;
pub use function::Function;
pub use module::{Module, PHASES};
pub use normalize::normalize;
pub use operators::{
    Evaluation, NoOperators, OpBook, OpCode, OpDef, Origin, Rule, RuleCode, RuleQuestion, RuleReply,
};
pub(crate) use scope_tree::ScopeTree;
pub use substitute::{DimBindings, substitute};
pub use symbols::symbols_in;
pub use symbols::symbols_of;
pub use tenon_plugin_api::ir::*;
pub use tenon_plugin_api::op::UNKNOWN_EXTENT;
pub use transaction::{Transaction, TransactionError};
pub use unbound::Unbound;
