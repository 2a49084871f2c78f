//! The reference evaluator: the judge of what a program means.
//!
//! [`Evaluator`] runs functions of a module, graph functions as well as tensor programs, at every phase.
//! Operators are evaluated by the kernels in `kernels`, tensor programs by the interpreter in `program`.
//! Nothing here recurses over a program, and nothing is shared with the code generator.

mod budget;
mod call;
mod env;
mod error;
mod evaluator;
pub(crate) mod kernels;
mod machine;
mod program;
mod runtime;
mod tensor;
mod value;

pub use budget::{LimitError, Limits};
pub use error::{EvalError, EvalProblem};
pub use evaluator::{Evaluator, evaluate_expr};
pub use program::ProgramError;
pub use tensor::{Element, Tensor};
pub use value::{FunctionValue, Place, Storage, Tuple, Value};

#[cfg(test)]
mod tests;
