//! The books of operators, those that the host's own run-time executes, and what a tensor program of an operator is.

mod book;
pub(crate) mod program;
mod runtime;

pub use book::{Combined, Linked, is_own, linked};
pub use program::{has_program, is_view};
pub use tenon_plugin_api::op::{
    Arity, AttrDef, AttrDefault, AttrKind, Layout, LayoutError, OpAttrs, OpEffect, OpError,
    OpPattern, OpSchema,
};
