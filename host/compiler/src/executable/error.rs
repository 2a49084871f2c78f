//! Why a module does not become an executable.

use crate::{
    backend::{BackendError, Problem, from_text},
    io::FileError,
    object::ObjectError,
    plan::PlanError,
    runtime::model::ModelError,
    target::TargetError,
};

use super::saved::SavedError;

/// An error of compilation, by who can act on it.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The function cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A tensor program cannot be compiled, or the code generator failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A program names a target that is not known.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A program names a target whose code cannot stand in the library.
    #[error(
        "tensor program `{program}`{}: it is for {own}, and the library for {target}: one library is for one architecture and one system; compile what is for another one by itself, by the name of its function and for its target",
        from_text(.came_from)
    )]
    OtherMachine { program: String, came_from: Option<String>, own: String, target: String },
    /// Code for several processors that is not of one model.
    #[error(
        "the code for {second} has {what} than that for {first}, so they are no library together"
    )]
    Differ { what: &'static str, first: String, second: String },
    /// A library of nothing.
    #[error("there is no code to make a library of")]
    NothingToJoin,
    /// A function that is asked for is not there.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Two functions whose names in C are the same.
    #[error(
        "@{first} and @{second} would both be `{name}` in C: give one of them an attribute `global_symbol`"
    )]
    SameName { first: String, second: String, name: String },
    /// There is no linker, or it failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A file that is no executable, or cannot become one.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// A name that cannot be a prefix in C.
    #[error("`{0}` cannot be the prefix of C names: {1}")]
    Prefix(String, &'static str),
    /// Sizes that are found out when the function is called.
    #[error(
        "a device runs functions of known shapes only; give the dimensions values, as in -D n=1"
    )]
    DeviceSizes,
    /// Control flow, which the processor would have to decide on.
    #[error(
        "a device runs kernels one after the other, no `if` and no functions; compile it for a processor"
    )]
    DeviceChoice,
    /// The names of inputs and outputs cannot be written down.
    #[error("the metadata cannot be written: {0}")]
    Metadata(serde_json::Error),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl CompileError {
    /// What does not hold of the module, by the name that a manifest gives it, where a pass would have established it.
    pub fn missing_fact(&self) -> Option<&'static str> {
        match self {
            CompileError::Plan(error) => error.missing_fact(),
            CompileError::Backend(BackendError::Program {
                problem: Problem::Left { fact, .. },
                ..
            }) => Some(fact),
            _ => None,
        }
    }
}
