//! Why a model does not become something that runs.

use thiserror::Error;

use crate::cache::CacheError;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::executable::CompileError;
use crate::io::FileError;
use crate::onnx::import::ImportError;
use crate::passes::PlanError;
use crate::registry::LookupError;
use crate::validate::CompiledError;

/// Why a session did not do what it was asked for; each knows what to tell a user.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A text that cannot be read, or a module that is not well formed.
    #[error(transparent)]
    Module(#[from] Diagnostics),
    /// An ONNX model that cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A pipeline that cannot be run, or an option that there is not.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A pass that there is not.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// An instrument that cannot be had.
    #[error("{}", .0.message)]
    Instrument(Box<Diagnostic>),
    /// The passes stopped.
    #[error("{}", .diagnostic.message)]
    Passes {
        /// What to tell.
        diagnostic: Box<Diagnostic>,
        /// Whether somebody stopped them.
        is_cancelled: bool,
    },
    /// No code can be made.
    #[error("{error}")]
    Code {
        /// Why.
        error: Box<CompileError>,
        /// Which passes were to see to it.
        help: Option<String>,
    },
    /// Compiled code could not be compared, or computes something else.
    #[error(transparent)]
    Validate(#[from] Box<CompiledError>),
    /// A folder that is no cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
}

impl SessionError {
    /// Whether it is that somebody stopped the session.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, SessionError::Passes { is_cancelled: true, .. })
    }

    /// All there is to tell a user.
    pub fn to_diagnostics(&self) -> Diagnostics {
        match self {
            SessionError::Module(diagnostics) => diagnostics.clone(),
            SessionError::Plan(error) => error.to_diagnostic().into(),
            SessionError::Lookup(error) => error.to_diagnostic().into(),
            SessionError::Instrument(diagnostic) | SessionError::Passes { diagnostic, .. } => {
                Diagnostic::clone(diagnostic).into()
            }
            SessionError::Code { error, help } => {
                let diagnostic = Diagnostic::error(error.to_string());
                match help {
                    Some(help) => diagnostic.help(help.as_str()).into(),
                    None => diagnostic.into(),
                }
            }
            other => Diagnostic::error(other.to_string()).into(),
        }
    }
}
