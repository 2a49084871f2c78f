//! The host's side of the border: the tables that plugins call.
//!
//! Each function of [`tables`], and of the files beside it, turns raw pointers back into the host's own values and does one thing.
//! Its unsafe blocks rest on one contract, that of `tenon_plugin_api::abi::tables`: a pointer that a
//! plugin passes is null, or one that the host gave it, of the kind the parameter says, and still owned.
//! Numbers are not trusted: of nodes, terms and constants only those that are there are taken.

mod codegen;
mod edit;
mod generators;
mod imports;
mod interpreters;
mod intrinsics;
mod operators;
mod own_rules;
mod programs;
mod rules;
mod run;
mod services;
mod tables;

pub(crate) use edit::REFUSAL;
pub use generators::{GeneratorError, Generators};
pub(crate) use imports::{
    AttributeParts, ConstantParts, ImportSession, Refusal, Served, ask_about_node, asker,
};
pub(crate) use interpreters::interpreter_of;
pub use intrinsics::{described_intrinsic, tensor_intrinsic};
pub(crate) use operators::{Noted, OpLibrary, ResultError};
pub use own_rules::{add_program, lend_transaction};
pub(crate) use programs::program;
pub use programs::program_of_call;
pub(crate) use rules::RuleLibrary;
pub(crate) use run::{Call, NotedCall};
pub use run::{PassFailure, Report, ReportLevel, Run};
pub(crate) use tables::{INTERFACES, host_ref};

#[cfg(test)]
mod tests;
