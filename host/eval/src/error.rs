//! Why something has no value.

use thiserror::Error;

use super::LimitError;
use super::program::ProgramError;
use tenon_ir::Expr;
use tenon_plugin_api::op::OpError;

/// What went wrong, and where.
#[derive(Debug, Error, Clone)]
#[error("{}{problem}", .function.as_ref().map(|name| format!("in `@{name}`: ")).unwrap_or_default())]
pub struct EvalError {
    /// The function of the module that was evaluated; `None` for an expression by itself.
    pub function: Option<String>,
    /// The node of it.
    pub node: Expr,
    /// What it came from, the number of a `NodeSource`.
    pub span: u32,
    /// What is wrong.
    pub problem: Box<EvalProblem>,
}

impl EvalError {
    /// Whether it says nothing of the program: the evaluator cannot run what it asks for, or may not go on.
    pub fn is_no_verdict(&self) -> bool {
        match &*self.problem {
            EvalProblem::NoEvaluation(_)
            | EvalProblem::Extern(_)
            | EvalProblem::Limit(_)
            | EvalProblem::UnknownDim(_) => true,
            EvalProblem::Program(problem) => {
                matches!(problem, ProgramError::Extern(_) | ProgramError::UnknownDim(_))
            }
            _ => false,
        }
    }
}

/// What is wrong.
#[derive(Debug, Error, Clone)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum EvalProblem {
    #[error("`{op}`: {error}")]
    Op { op: String, error: OpError },
    #[error("a value that the model is given is none that it is made for")]
    NotExpected,
    #[error("an extent is {extent}, and must be {wanted}")]
    NoFit { extent: i64, wanted: i64 },
    #[error("`{0}` has no reference evaluation")]
    NoEvaluation(String),
    #[error("there is no function `@{0}`")]
    UnknownFunction(String),
    #[error("`{0}` is outside of the module and cannot be evaluated")]
    Extern(String),
    #[error("`%{0}` has no value here")]
    Unbound(String),
    #[error("the dimensions of `{0}` are not known from the arguments")]
    UnknownDim(String),
    #[error("{0} is expected, not {1}")]
    WrongValue(&'static str, &'static str),
    #[error("the function takes {expected} argument{}, not {found}", if *.expected == 1 { "" } else { "s" })]
    WrongArgCount { expected: usize, found: usize },
    #[error("argument {} is {found}, but the parameter is {expected}", .index + 1)]
    WrongArg { index: usize, expected: String, found: String },
    #[error("there is no field {index} in a tuple of {count}")]
    NoField { index: usize, count: usize },
    #[error("{what} is {found}, but it is declared as {declared}")]
    WrongType { what: String, found: String, declared: String },
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error("{0} cannot be evaluated")]
    UnknownNode(&'static str),
    #[error("a tensor of type {0} cannot be made: its size is not known, or too large")]
    Alloc(String),
    #[error("a storage of {0} bytes cannot be made")]
    BadStorage(i64),
    #[error("a tensor of type {ty} at byte {offset} lies outside of its storage")]
    OutsideStorage { ty: String, offset: i64 },
    #[error("a tensor cannot be looked at as one of type {0}: it has another size")]
    WrongView(String),
    #[error("the heap of dimensions has no slot {0}")]
    OutsideHeap(i64),
    #[error("`{name}` is bound to {element}, which is not in 0..{}", .limit.as_ref().map_or(String::new(), |limit| format!("={limit}")))]
    Bound { name: String, element: i64, limit: Option<String> },
    #[error("{what} is {found}, but {declared} is expected{reason}")]
    WrongShape { what: String, found: String, declared: String, reason: String },
    #[error("{0}")]
    Program(ProgramError),
}
