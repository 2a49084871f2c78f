//! The books of operators, those that the host's own run-time executes, and what a tensor program of an operator is.

mod book;
mod extended;
pub(crate) mod program;
mod runtime;

pub use book::{Combined, Linked, is_own, linked};
pub use extended::Extended;
pub use program::{has_program, is_view};
pub(crate) use runtime::longer_axis;
pub use tenon_plugin_api::op::{
    Arity, AttrDef, AttrDefault, AttrKind, Layout, LayoutError, OpAttrs, OpEffect, OpError,
    OpPattern, OpSchema,
};
