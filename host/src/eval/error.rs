//! Why something has no value.

use thiserror::Error;

use crate::ir::Expr;
use crate::ops::OpError;

/// What went wrong, and where.
#[derive(Debug, Error, Clone)]
#[error("{}{problem}", .function.as_ref().map(|name| format!("in `@{name}`: ")).unwrap_or_default())]
pub struct EvalError {
    /// The function of the module that was evaluated; `None` for an expression by itself.
    pub function: Option<String>,
    /// The node of it.
    pub node: Expr,
    /// Where it comes from in the text, plus one; 0 when unknown.
    pub span: u32,
    /// What is wrong.
    pub problem: Box<EvalProblem>,
}

/// What is wrong.
#[derive(Debug, Error, Clone)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum EvalProblem {
    #[error("`{op}`: {error}")]
    Op { op: String, error: OpError },
    #[error("`{0}` has no reference evaluation")]
    NoEvaluation(String),
    #[error("there is no function `@{0}`")]
    UnknownFunction(String),
    #[error("`{0}` is outside of the module and cannot be evaluated")]
    Extern(String),
    #[error("`%{0}` has no value here")]
    Unbound(String),
    #[error("{0} is expected, not {1}")]
    WrongValue(&'static str, &'static str),
    #[error("the function takes {expected} argument{}, not {found}", if *.expected == 1 { "" } else { "s" })]
    WrongArgCount { expected: usize, found: usize },
    #[error("argument {} is {found}, but the parameter is {expected}", .index + 1)]
    WrongArg { index: usize, expected: String, found: String },
    #[error("there is no field {index} in a tuple of {count}")]
    NoField { index: usize, count: usize },
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
    #[error("{what} is {found}, but {declared} is expected{reason}")]
    WrongShape { what: String, found: String, declared: String, reason: String },
    #[error("{0}")]
    Program(super::program::ProgramError),
}
