//! The books of operators, those that the host's own run-time executes, and the tensor programs of operators.

mod book;
pub mod legalize;
mod legalize_cx;
mod runtime;

pub use book::{Combined, Linked, is_own, linked};
pub use legalize::has_program;
pub use legalize_cx::{LegalizeCx, VectorUnit, legalize_call};
pub use tenon_plugin_api::op::{
    Arity, AttrDef, AttrDefault, AttrKind, Layout, LayoutError, OpAttrs, OpEffect, OpError,
    OpPattern, OpSchema,
};
