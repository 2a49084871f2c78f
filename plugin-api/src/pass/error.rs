//! How a pass fails.

use std::fmt;

use crate::abi::tables::Failure;
use crate::ir::Expr;
use crate::op::OpError;
use crate::pass::Function;

/// The result of a pass.
pub type Result<T> = std::result::Result<T, PassError>;

/// Why a pass failed. The host adds the pass's name, and underlines the node in the function's text.
#[derive(Clone)]
pub struct PassError {
    pub(crate) message: String,
    pub(crate) node: Option<Expr>,
    /// Whose node it is, when not the function's that the pass was given.
    pub(crate) program: Option<Function>,
    pub(crate) failure: Failure,
}

impl PassError {
    /// An error with a message: what is wrong and what to do, in one sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self::failed(Failure::ERROR, message.into())
    }

    /// The same error about a node of the function that the pass was given.
    pub fn at(self, node: Expr) -> Self {
        Self { node: Some(node), program: None, ..self }
    }

    /// The same error about a node of a function that the pass made: the message shows that.
    pub fn in_function(self, function: impl Into<Function>, node: Expr) -> Self {
        Self { node: Some(node), program: Some(function.into()), ..self }
    }

    /// What a pass returns when [`crate::pass::PassContext::is_cancelled`] told it to stop.
    pub fn cancelled() -> Self {
        Self::failed(Failure::CANCELLED, "cancelled".into())
    }

    /// An error of a kind.
    pub(crate) fn failed(failure: Failure, message: String) -> Self {
        Self { message, node: None, program: None, failure }
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

impl PartialEq for PassError {
    fn eq(&self, other: &Self) -> bool {
        let parts = |error: &Self| (error.node, error.failure, error.program.is_some());
        self.message == other.message && parts(self) == parts(other)
    }
}

impl Eq for PassError {}

impl fmt::Debug for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassError")
            .field("message", &self.message)
            .field("node", &self.node)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
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
