//! Why a primitive was not applied.

use std::fmt;

use crate::tree::Id;

/// A primitive that was not applied: which one, why, and to what. The schedule is as it was before.
///
/// It is a value: a rule that meets one does not match, and the next is tried.
/// [`Schedule::explain`](crate::Schedule::explain) makes an error of it that underlines the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub(crate) primitive: &'static str,
    pub(crate) reason: String,
    pub(crate) place: Option<Id>,
}

/// What a primitive gives, or why it was not applied.
pub type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// What a rule returns that does not match, with its reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { primitive: "", reason: reason.into(), place: None }
    }

    pub(crate) fn at(self, place: Id) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The primitive that was not applied.
    pub fn primitive(&self) -> &'static str {
        self.primitive
    }

    /// Why not, in one sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.primitive {
            "" => f.write_str(&self.reason),
            primitive => write!(f, "`{primitive}` is refused: {}", self.reason),
        }
    }
}

impl std::error::Error for Refusal {}

/// Refuses with a reason about a statement.
pub(crate) fn refuse<T>(at: Id, reason: impl Into<String>) -> Result<T> {
    Err(Refusal::new(reason).at(at))
}
