//! Operators: what one is, and what its type inference and its evaluation are given.
//!
//! An operator is one file with a struct under [`macro@crate::op`]: its fields are the attributes, [`Operator::infer`] gives
//! the type of a call, [`Operator::evaluate`] says what it means. `docs/operators.md` shows one from its first line on.

mod attrs;
mod error;
mod eval_cx;
mod infer_cx;
mod layout;
mod memory;
pub mod number;
mod operator;
mod schema;
mod tensor;

pub use attrs::{Attribute, OpAttrs};
pub use error::{OpError, Result};
pub use eval_cx::{EvalCx, UNKNOWN_EXTENT};
pub use infer_cx::{InferCx, TensorTy};
pub use layout::{Layout, LayoutError};
pub use memory::{prefer_large_pages, zeros};
pub use operator::{Operator, Schema};
pub use schema::{
    Arity, AttrBounds, AttrDef, AttrDefault, AttrKind, OpEffect, OpPattern, OpSchema, attr,
};
pub use tensor::{Element, Tensor};

/// All that an operator's file usually needs.
pub mod prelude {
    pub use crate::ir::{Context, DType, Dim, Term, TermView, Type, TypeView};
    pub use crate::op;
    pub use crate::op::number::Number;
    pub use crate::op::{
        Element, EvalCx, InferCx, Layout, OpError, Operator, Result, Schema, Tensor, TensorTy,
    };
}
