//! What is wrong with a node that is imported.

use std::fmt;

use crate::abi::tables::Failure;
use crate::pass::PassError;

use super::Value;

/// What a rule of `import.onnx` mostly returns: the outputs of the node, or what is wrong with it.
pub type Outputs = Result<Vec<Value>, Problem>;

/// What stops the import of one node. Whoever reports it names the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The format allows it, the rule does not. It gets into a list of all that is not supported.
    Unsupported(String),
    /// An input must be known here, which the format does not ask for. It gets into that list.
    NotConstant {
        /// Its number, from 0 on; none where it is no input of the node.
        input: Option<usize>,
        /// What is wrong.
        text: String,
    },
    /// Input `input` must be known here, and is one of few. The importer tries all of these where it follows from inputs of the
    /// model; where that does not help, it gets into that list.
    Choice {
        /// Its number, from 0 on.
        input: usize,
        /// What it is made of.
        of: Few,
        /// What is wrong.
        text: String,
    },
    /// The format does not allow it: the model is wrong, and its import ends.
    Invalid(String),
    /// An operator does not take it, for either reason. It gets into the list.
    Operator(String),
    /// A tensor of the node cannot be read. The import ends, unless it is of a type of elements that is not supported.
    Tensor(String),
    /// Not the node is wrong but the rule.
    Rule(PassError),
}

/// What an input is made of that has few values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Few {
    /// Axes of tensors, or truth values.
    Axes,
    /// Extents that the results of the node have.
    Extents,
}

/// Says that something is not supported.
pub fn unsupported<T>(reason: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Unsupported(reason.into()))
}

/// Says that the model is wrong.
pub fn invalid<T>(reason: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Invalid(reason.into()))
}

impl Problem {
    /// What a service of the host's refused, by the number that it gave.
    pub(crate) fn told(kind: Failure, text: String) -> Self {
        match kind {
            Failure::UNSUPPORTED => Self::Unsupported(text),
            Failure::INVALID => Self::Invalid(text),
            Failure::OPERATOR => Self::Operator(text),
            Failure::TENSOR => Self::Tensor(text),
            _ => match kind.parts() {
                (Failure::NOT_CONSTANT, number) => {
                    Self::NotConstant { input: number.checked_sub(1), text }
                }
                (Failure::AXES, input) => Self::Choice { input, of: Few::Axes, text },
                (Failure::EXTENTS, input) => Self::Choice { input, of: Few::Extents, text },
                _ => Self::Rule(PassError::new(text)),
            },
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(text)
            | Self::NotConstant { text, .. }
            | Self::Choice { text, .. }
            | Self::Invalid(text)
            | Self::Operator(text)
            | Self::Tensor(text) => f.write_str(text),
            Self::Rule(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Problem {}

impl From<PassError> for Problem {
    fn from(error: PassError) -> Self {
        Self::Rule(error)
    }
}

impl From<Problem> for PassError {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Unsupported(text) => Self::failed(Failure::UNSUPPORTED, text),
            Problem::NotConstant { input, text } => {
                let number = input.map_or(0, |input| input + 1);
                Self::failed(Failure::NOT_CONSTANT.of_input(number), text)
            }
            Problem::Choice { input, of: Few::Axes, text } => {
                Self::failed(Failure::AXES.of_input(input), text)
            }
            Problem::Choice { input, of: Few::Extents, text } => {
                Self::failed(Failure::EXTENTS.of_input(input), text)
            }
            Problem::Invalid(text) => Self::failed(Failure::INVALID, text),
            Problem::Operator(text) => Self::failed(Failure::OPERATOR, text),
            Problem::Tensor(text) => Self::failed(Failure::TENSOR, text),
            Problem::Rule(error) => error,
        }
    }
}
