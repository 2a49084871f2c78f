//! Operators: an open set, known by name, each of them one [`OpDef`].
//!
//! An operator's item states its attributes, its type, its fusion pattern, how it is evaluated and how it
//! becomes a tensor program. Items register themselves; [`get`] and [`all`] find them.

mod attrs;
pub mod core;
mod def;
mod error;
mod eval_cx;
mod groups;
mod infer_cx;
mod layout;
pub mod legalize;
mod legalize_cx;
mod table;

pub use attrs::OpAttrs;
pub use def::{
    Arity, AttrDef, AttrDefault, AttrKind, Evaluate, Infer, Legalize, OpDef, OpEffect, OpPattern,
    attr,
};
pub use error::OpError;
pub use eval_cx::EvalCx;
pub(crate) use groups::Groups;
pub use infer_cx::{InferCx, OUT_DTYPE, TensorTy, infer_call};
pub use layout::{Layout, LayoutError};
pub use legalize_cx::{LegalizeCx, VectorUnit, flatten, legalize_call};
pub use table::{all, find, get};
