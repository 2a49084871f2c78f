//! The reference evaluator: the judge of what a program means.
//!
//! [`Evaluator`] runs functions of a module, graph functions as well as tensor programs, at every phase.
//! Operators evaluate themselves, or are executed by `runtime`; tensor programs go through the interpreter in `program`.
//! Nothing here recurses over a program, and nothing is shared with the code generator.

mod budget;
mod call;
mod env;
mod error;
mod evaluator;
mod fold;
mod machine;
mod program;
mod runtime;
mod value;
mod watch;

pub use budget::{LimitError, Limits};
pub use call::results_of;
pub use error::{EvalError, EvalProblem};
pub use evaluator::{Evaluator, evaluate_expr};
pub use fold::{FoldError, fold};
pub use program::ProgramError;
pub use tenon_plugin_api::op::{Element, Tensor};
pub use value::{FunctionValue, Place, Storage, Tuple, Value};
pub use watch::longest as longest_evaluation;
