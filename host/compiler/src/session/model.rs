//! What is compiled: models from files, from memory, or built by a program.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Session, SessionError};
use crate::check::{Violation, check};
use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::io::{InputFiles, Mapping};
use crate::ir::{Cx, Module};
use crate::onnx::import::{ImportOptions, Imported, import, import_mapping};
use crate::text::{parse_checked_module, read_checked_module};

/// Values for symbolic dimensions.
pub type Dims = BTreeMap<String, i64>;

/// A module in which all types are known and that is well formed.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its functions.
    pub module: Module,
    /// What it was read from: no output may replace it.
    pub files: InputFiles,
    /// What is to be told of it before it is compiled.
    pub notes: Vec<String>,
}

impl From<Module> for Model {
    /// A module that a program has built, in a context of [`Session::context`].
    fn from(module: Module) -> Model {
        Model { module, files: InputFiles::default(), notes: Vec::new() }
    }
}

impl Session {
    /// An empty context that knows the operators of the plugins, and those of the program's own.
    pub fn context(&self) -> Cx {
        Cx::with_operators(self.operators.clone())
    }

    /// Reads a model: a file that ends in `.onnx`, or a module's text with its weights beside it.
    pub fn read(&self, path: &Path, dims: &Dims) -> Result<Model, SessionError> {
        let (module, weights, notes) = match path.extension().is_some_and(|it| it == "onnx") {
            true => {
                let Imported { module, files, notes } =
                    import(&self.context(), path, &with_dims(dims))?;
                (well_formed(module)?, files, notes)
            }
            false => {
                no_dims(&path.display().to_string(), dims)?;
                let (module, weights) = read_checked_module(&self.context(), path)?;
                (module, weights, Vec::new())
            }
        };
        let files = InputFiles::new(std::iter::once(path.to_owned()).chain(weights));
        Ok(Model { module, files, notes })
    }

    /// An ONNX model in memory. `path` is what it is called in messages, and where its external data would lie.
    pub fn read_onnx_bytes(
        &self,
        path: &Path,
        bytes: Vec<u8>,
        dims: &Dims,
    ) -> Result<Model, SessionError> {
        let file = Mapping::in_memory(path, bytes);
        let Imported { module, notes, .. } =
            import_mapping(&self.context(), &file, &with_dims(dims))?;
        Ok(Model { notes, ..well_formed(module)?.into() })
    }

    /// A module's text in memory, which names no weights file. `name` is what it is called in messages.
    pub fn parse(&self, name: &str, text: &str) -> Result<Model, SessionError> {
        let source = Source::new(name, text);
        Ok(parse_checked_module(&self.context(), &source)?.into())
    }
}

fn with_dims(dims: &Dims) -> ImportOptions {
    ImportOptions { dims: dims.clone(), ..ImportOptions::default() }
}

fn well_formed(module: Module) -> Result<Module, Diagnostics> {
    let violations = check(&module);
    match violations.is_empty() {
        true => Ok(module),
        false => Err(Diagnostics(violations.iter().map(Violation::to_diagnostic).collect())),
    }
}

/// Dimensions are bound while an ONNX model is imported.
fn no_dims(file: &str, dims: &Dims) -> Result<(), Diagnostics> {
    let Some(name) = dims.keys().next() else { return Ok(()) };
    let message = format!(
        "-D {name}: dimensions are bound while an ONNX model is imported, and {file} is a text"
    );
    let help = "a pass binds them in a text: docs/running.md says under \"Shapes\" how a pipeline begins with it";
    Err(Diagnostic::error(message).help(help).into())
}
