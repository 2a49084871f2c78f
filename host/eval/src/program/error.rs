//! Why a tensor program cannot be evaluated.

use thiserror::Error;

use crate::LimitError;

/// Why a tensor program cannot be evaluated.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ProgramError {
    #[error("index [{}] is outside of buffer `{buffer}`, which has shape [{}], in {stmt}", list(.index), list(.shape))]
    OutOfBounds { buffer: String, index: Vec<i64>, shape: Vec<i64>, stmt: String },
    #[error("an integer is divided by zero in {stmt}")]
    DivisionByZero { stmt: String },
    #[error("{what} cannot be evaluated (node {node})")]
    Unsupported { what: String, node: u32 },
    #[error("`{0}` is compiled code, which the reference evaluator cannot run")]
    Extern(String),
    #[error("node {0} has no scalar type")]
    Untyped(u32),
    #[error("`{name}` is used where it is not defined (node {node})")]
    Undefined { name: String, node: u32 },
    #[error("buffer `{0}` is written but was given as a constant")]
    ReadOnly(String),
    #[error("the size of buffer `{0}` is not known or too large")]
    BadBuffer(String),
    #[error("argument {} is {found}, but the parameter is {expected}", .index + 1)]
    WrongArg { index: usize, expected: String, found: String },
    #[error("the tensor program takes {expected} arguments, not {found}")]
    WrongArgCount { expected: usize, found: usize },
    #[error("dimension `{0}` is not known from the arguments")]
    UnknownDim(String),
    #[error(
        "index [{}] of buffer `{buffer}` is touched by {who}, in {stmt}: no barrier is between the two, of which one writes",
        list(.index)
    )]
    Race { buffer: String, index: Vec<i64>, who: String, stmt: String },
    #[error("index [{}] of shared buffer `{buffer}` is read, which nobody has written, in {stmt}", list(.index))]
    Unwritten { buffer: String, index: Vec<i64>, stmt: String },
    #[error(
        "{waiting} threads of a block wait at a barrier to which {others} others do not come, in {stmt}"
    )]
    Divergence { waiting: usize, others: usize, stmt: String },
    #[error("a block has more than {0} threads, the limit of an evaluation")]
    Threads(usize),
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error("the program is too large to be evaluated")]
    TooLarge,
}

fn list(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}
