//! The reference evaluator: the judge of what a program means.

mod tensor;

pub use tensor::{Element, Tensor};
