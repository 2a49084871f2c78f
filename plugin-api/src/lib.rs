//! All that the author of a Tenon plugin sees.
//!
//! A plugin is a shared library. Its `lib.rs` names it with [`plugin!`]; each pass is one file with one
//! function under [`macro@pass`]. [`ir`] reads and builds the IR, [`mod@pass`] holds what a pass is given,
//! [`mod@op`] what an operator is, [`mod@rule`] what is known of operators besides.
//! [`abi`] is the border beneath; an author needs nothing of it and writes no unsafe.

#![deny(missing_docs)]

// The macros expand to paths that start with the crate's name.
extern crate self as tenon_plugin_api;

pub mod abi;
pub mod ir;
pub mod op;
pub mod pass;
pub mod pattern;
pub mod program;
pub mod rule;

pub use tenon_plugin_api_macros::{Options, codegen, instrument, op, pass, plugin, rule};

/// All that a pass file usually needs.
pub mod prelude {
    pub use crate::ir::{
        AttrValue, Attrs, AttrsView, BinaryOp, BodyView, Build, BuildPrim, Context, DType, Dim,
        Expr, Kind, LoopKind, NodeSource, NodeSpec, SideTable, Substitution, Symbol, Term,
        TermView, Type, TypeView, View, Walk,
    };
    pub use crate::pass::{
        Call, CallGraph, Calls, Effects, Function, LetList, Module, ModuleEffects, OpPattern,
        PassContext, PassError, PrimFunc, Result, Rewriter, Template, Uses,
    };
    pub use crate::{Options, codegen, instrument, pass, plugin};
}
