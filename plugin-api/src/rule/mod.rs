//! Rules: what is known of operators besides their meaning, from any plugin.
//!
//! A *facet* is one kind of knowledge, such as the gradient of a call. A rule gives it for one key, mostly the name of an
//! operator, and is a function under [`macro@crate::rule`]. Whoever needs the knowledge asks for it by key and names no
//! operator: a pass asks through [`PassContext::rules`](crate::pass::PassContext::rules). Of several rules for one key the
//! one of the greatest benefit is asked first, and the next one when it declines; `docs/rules.md` tells who comes first.
//!
//! What is asked and answered crosses between libraries as nodes and one term; [`Facet`] says for its facet what they mean.
//! A plugin that defines a facet of its own implements it, and others that depend on that plugin's crate write rules for it.

mod asking;
mod compute;
mod cost;
mod facet;
mod gradient;
pub mod import;
mod interpreter;
mod intrinsic;
mod knob;
mod layout;
mod precision;
mod question;
mod reducer;
mod rewrite;
mod site;
mod tensor_intrinsic;

pub use asking::Rules;
pub use compute::Compute;
pub use cost::{Cost, CostOf, DimSum};
pub use facet::Facet;
pub use gradient::{Adjoint, Grad, Gradient, Grads};
pub use import::ImportOnnx;
pub use interpreter::{Interpreter, Interpreters};
pub use intrinsic::Intrinsics;
pub use knob::Knob;
pub use layout::{Carried, FollowLayout, Following, LayoutArg, Leaf};
pub use precision::{NarrowPrecision, Precision};
pub use question::{Answer, Question, Reply};
pub use reducer::{Joined, Joining, REDUCER, Reducers};
pub use rewrite::{
    Approximate, AsView, Canonicalize, DecomposeForInference, DecomposeForTraining, Rewrites,
    Simplify,
};
pub use site::{AboutCall, Site, op_of};
pub use tensor_intrinsic::{INTRINSIC, TensorIntrinsic, TileElement, TileOperand, step_of};

/// All that a file with rules usually needs.
pub mod prelude {
    pub use crate::ir::{
        AttrValue, Attrs, Build, Context, DType, Dim, Expr, Kind, Symbol, Term, TermView, Type,
        TypeView, View,
    };
    pub use crate::pass::{Arithmetic, Call, Calls, PassError};
    pub use crate::program::{Intrinsic, Program, Stmt};
    pub use crate::rule;
    pub use crate::rule::import::{
        Known, Node, Outputs, Problem, Scalar, Value, invalid, unsupported,
    };
    pub use crate::rule::{
        AboutCall, Adjoint, Carried, Cost, Following, Grad, Grads, Joining, LayoutArg, Precision,
        Site,
    };
}
