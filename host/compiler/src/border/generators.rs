//! The code generators that passes ask for, whoever has them.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::run::{PassFailure, Run};
use crate::ir::{Function, Module, Symbol};

/// The code generators that a pass may ask for.
pub trait Generators: Send + Sync {
    /// The patterns of what the generator called `name` takes, each `name = pattern`.
    fn patterns(&self, name: &str) -> Result<Vec<String>, GeneratorError>;

    /// Whether the generator called `name` takes what one of its patterns matched.
    fn accepts(
        &self,
        name: &str,
        run: &Arc<Run>,
        function: &Arc<Function>,
    ) -> Result<bool, GeneratorError>;

    /// Has the generator called `name` compile functions `names` of `module`. Returns a relocatable object.
    fn generate(
        &self,
        name: &str,
        run: &Arc<Run>,
        module: &Module,
        names: &[Symbol],
    ) -> Result<Vec<u8>, GeneratorError>;
}

/// Why a code generator gives no answer.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the variants are")]
pub enum GeneratorError {
    #[error("there are no code generators here")]
    None,
    #[error("no plugin has a code generator `{name}`{} (looked in {})", near(.nearest), paths(.searched))]
    Unknown { name: String, nearest: Option<String>, searched: Vec<PathBuf> },
    #[error(
        "two plugins have a code generator `{name}`: {} and {}; take one of the files away",
        .files[0].display(), .files[1].display()
    )]
    Twice { name: String, files: [PathBuf; 2] },
    #[error("{place} keeps `{id}` out of this process, where its code generator would run")]
    Isolated { id: String, place: String },
    /// Its plugin cannot be used.
    #[error(transparent)]
    Load(Box<dyn StdError + Send + Sync>),
    #[error("code generator `{name}`: {}", .failure.message)]
    Failed { name: String, failure: PassFailure },
}

fn near(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or(String::new(), |near| format!(": did you mean `{near}`?"))
}

fn paths(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}
