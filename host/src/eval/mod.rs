//! The reference evaluator: the judge of what a program means.

pub(crate) mod kernels;
mod tensor;

pub use tensor::{Element, Tensor};
