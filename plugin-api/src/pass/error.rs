//! How a pass fails.

use std::fmt;

use crate::abi::tables::Failure;
use crate::ir::Expr;
use crate::op::OpError;

/// The result of a pass.
pub type Result<T> = std::result::Result<T, PassError>;

/// Why a pass failed. The host adds the pass's name, and underlines the node in the function's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassError {
    pub(crate) message: String,
    pub(crate) node: Option<Expr>,
    pub(crate) failure: Failure,
}

impl PassError {
    /// An error with a message: what is wrong and what to do, in one sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self::failed(Failure::ERROR, message.into())
    }

    /// The same error about a node of the function that the pass was given.
    pub fn at(self, node: Expr) -> Self {
        Self { node: Some(node), ..self }
    }

    /// What a pass returns when [`crate::pass::PassContext::is_cancelled`] told it to stop.
    pub fn cancelled() -> Self {
        Self::failed(Failure::CANCELLED, "cancelled".into())
    }

    /// An error of a kind.
    pub(crate) fn failed(failure: Failure, message: String) -> Self {
        Self { message, node: None, failure }
    }

    /// What was a panic of some thread, with its place.
    pub(crate) fn panicked(message: String) -> Self {
        Self::failed(Failure::PANIC, message)
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PassError {}

impl From<OpError> for PassError {
    fn from(error: OpError) -> Self {
        Self::new(error.to_string())
    }
}
