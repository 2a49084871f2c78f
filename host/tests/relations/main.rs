//! The checker, inference and the normal form, over functions that call operators.

mod check;
mod dims;
mod infer;
mod normalize;
#[path = "../support/operators.rs"]
mod operators;
