//! Reading and writing modules: ONNX files and the text form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::output::Failure;
use crate::check::{Violation, check};
use crate::diagnostics::Diagnostics;
use crate::io::{InputFiles, Outputs};
use crate::ir::{Cx, Module};
use crate::onnx::import::{ImportOptions, import_with_files};
use crate::passes::Reproducer;
use crate::registry::Registry;
pub(super) use crate::text::weights_path;
use crate::text::{self, TextForm, read_checked_module};

/// Constants of up to this many elements stand in a text that is written to a file.
const FORM: TextForm = TextForm { inline_limit: 64, has_sources: false };

/// Values for symbolic dimensions.
pub(super) type Dims = BTreeMap<String, i64>;

/// A module that was read.
pub(super) struct Model {
    pub(super) module: Module,
    /// What it was read from: no output may replace it.
    pub(super) files: InputFiles,
}

/// Reads a model: an `.onnx` file, or a module's text. All types are inferred, and it is well formed. Its operators are
/// those of the registry.
pub(super) fn read_model(registry: &Registry, path: &Path, dims: Dims) -> Result<Model, Failure> {
    let cx = Cx::with_operators(registry.operators());
    let (module, weights) = read_with_files(&cx, path, dims)?;
    let files = InputFiles::new(std::iter::once(path.to_owned()).chain(weights));
    Ok(Model { module, files })
}

fn read_with_files(cx: &Cx, path: &Path, dims: Dims) -> Result<(Module, Vec<PathBuf>), Failure> {
    if path.extension().is_some_and(|extension| extension == "onnx") {
        let options = ImportOptions { dims, ..ImportOptions::default() };
        let (module, weights) = import_with_files(cx, path, &options)?;
        let violations = check(&module);
        return match violations.is_empty() {
            true => Ok((module, weights)),
            false => Err(Failure::from_diagnostics(Diagnostics(
                violations.iter().map(Violation::to_diagnostic).collect(),
            ))),
        };
    }
    if let Some(name) = dims.keys().next() {
        return Err(Failure::new(format!(
            "-D {name}: dimensions are bound while an ONNX model is imported, and {} is a text",
            path.display()
        )));
    }
    read_checked_module(cx, path).map_err(Failure::from_diagnostics)
}

/// What stands above the module of a reproducer; `None` when a file is none.
pub(super) fn read_reproducer(path: &Path) -> Option<Reproducer> {
    Reproducer::of_text(&std::fs::read_to_string(path).ok()?)
}

/// Writes a module as text, its large constants into a safetensors file beside it, and publishes all of `outputs`.
pub(super) fn write_module(module: &Module, path: &Path, outputs: Outputs) -> Result<(), Failure> {
    write_module_below("", module, path, false, outputs)
}

/// The same below some lines of comments, with what nodes came from or without.
pub(super) fn write_module_below(
    comments: &str,
    module: &Module,
    path: &Path,
    has_sources: bool,
    outputs: Outputs,
) -> Result<(), Failure> {
    let form = TextForm { has_sources, ..FORM };
    Ok(text::write_module_below(comments, module, path, form, outputs)?)
}
