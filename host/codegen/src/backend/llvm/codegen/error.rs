//! The errors of a code generator, as this one meets them.

use inkwell::builder::BuilderError;

pub(super) use crate::backend::{BackendError, Problem};

pub(super) type Result<T> = std::result::Result<T, Problem>;

impl From<BuilderError> for Problem {
    fn from(error: BuilderError) -> Problem {
        Problem::Instruction(error.to_string())
    }
}
