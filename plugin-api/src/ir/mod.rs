//! The IR: terms (types, dimensions, attributes), nodes, and how both are read and built.
//!
//! Terms are hash-consed in a [`Context`]: two equal terms have the same id, so equality of types and
//! attributes is equality of ids. Nodes live in the arena of one function body. In a published body the
//! operands of a node stand before it, so ascending ids are a post-order and no traversal recurses.

mod args;
mod blocks;
mod build;
mod bytes;
mod callee;
mod context;
mod device;
mod dim;
mod dim_choice;
mod dim_division;
mod dim_math;
mod dim_text;
mod dtype;
mod fit;
mod intrinsic;
mod kind;
pub mod narrow;
mod number;
mod prim;
mod side_table;
mod source;
mod structure;
mod substitute;
mod symbol_map;
mod term;
mod type_text;
mod view;
mod walk;

pub use args::Args;
pub use blocks::{BlockIter, LetBlock, LetView, NewBlock, PrimBlockView};
pub use build::{Build, NodeSpec};
pub use bytes::Bytes;
pub use callee::{Callee, impure_functions};
pub use context::{AttrValue, Context};
pub use device::{DEVICE_KINDS, device_problem};
pub use dtype::DType;
pub use fit::{FITS, Fit};
pub use intrinsic::{BARRIER, BOUND, INTRINSICS, IntrinsicArgs, IntrinsicDef, IntrinsicResult};
pub use kind::{BinaryOp, Kind, LoopKind, Named, STREAMS};
pub use prim::BuildPrim;
pub use side_table::SideTable;
pub use source::{NodeSource, SourcePart};
pub use structure::Structure;
pub use substitute::{Substitution, substitute};
pub use symbol_map::{InBlocks, SymbolMap};
pub use term::{
    Attrs, AttrsView, Dim, DimView, Symbol, Term, TermKind, TermView, Terms, Type, TypeView,
};
pub use view::{BodyView, ConstantView, Expr, View};
pub use walk::{StmtWalk, Walk};
