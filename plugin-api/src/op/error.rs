//! What can be wrong with a call of an operator.

use std::path::PathBuf;

use thiserror::Error;

use crate::ir::DType;
use crate::pass::PassError;

use super::{Arity, AttrDef, AttrKind, LayoutError};

/// The result of what an operator is asked.
pub type Result<T, E = OpError> = std::result::Result<T, E>;

/// Why a call of an operator has no type or no value. Whoever reports it names the operator and the place.
#[derive(Debug, Error, Clone)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum OpError {
    /// Where none is near, the folders tell where its plugin would have been found.
    #[error("there is no operator `{name}`{}", instead_text(.nearest, .searched))]
    UnknownOp { name: String, nearest: Vec<String>, searched: Vec<PathBuf> },
    #[error("it takes {expected}, not {found}")]
    WrongArity { expected: Arity, found: usize },
    #[error("it has no attribute `{name}`; {}", known_text(.known))]
    UnknownAttr { name: String, known: &'static [AttrDef] },
    #[error("its attribute `{name}`, {kind}, is missing")]
    MissingAttr { name: &'static str, kind: AttrKind },
    #[error("its attribute `{name}` is {expected}, not {found}")]
    WrongAttrKind { name: &'static str, expected: AttrKind, found: &'static str },
    #[error("its attribute `{name}` cannot be {value}: {reason}")]
    BadAttr { name: &'static str, value: String, reason: String },
    #[error("argument {} is {found}, but {expected} is expected", .index + 1)]
    WrongArg { index: usize, expected: String, found: String },
    #[error("argument {} has elements of {found}, but {expected} is expected", .index + 1)]
    WrongDType { index: usize, expected: String, found: DType },
    #[error("{what} do not agree: {left} and {right}")]
    ShapeMismatch { what: String, left: String, right: String },
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Value(String),
    /// What an operator of a plugin says.
    #[error("{0}")]
    Told(String),
    /// Not the call is wrong but the operator: it panicked, or gave what cannot be.
    #[error("the operator is broken: {0}")]
    Broken(String),
    /// It is not clear which rule for an operator is asked, or it cannot be.
    #[error("{0}")]
    Conflict(String),
    /// There is such an operator, and it cannot be used.
    #[error("it cannot be used: {0}")]
    Unavailable(String),
}

impl From<PassError> for OpError {
    fn from(error: PassError) -> Self {
        Self::Told(error.message().to_owned())
    }
}

fn instead_text(nearest: &[String], searched: &[PathBuf]) -> String {
    match (nearest, searched) {
        ([], []) => String::new(),
        ([], folders) => {
            let folders: Vec<String> = folders.iter().map(|it| it.display().to_string()).collect();
            format!("; plugins were looked for in {}", folders.join(", "))
        }
        ([name], _) => format!("; near it is `{name}`"),
        (names, _) => format!("; near it are `{}`", names.join("`, `")),
    }
}

fn known_text(known: &[AttrDef]) -> String {
    match known {
        [] => "it has none".to_owned(),
        known => {
            let names: Vec<String> = known.iter().map(|attr| format!("`{}`", attr.name)).collect();
            format!("it has {}", names.join(", "))
        }
    }
}
