//! The operators that the host's own run-time executes, and what a tensor program of an operator is.

pub mod program;
mod runtime;

pub use program::{has_program, is_view};
pub use runtime::{is_own, longer_axis, own_operator, own_operators};
pub use tenon_plugin_api::op::{
    Arity, AttrDef, AttrDefault, AttrKind, Layout, LayoutError, OpAttrs, OpEffect, OpError,
    OpPattern, OpSchema,
};
