//! Reading and writing what commands take besides models.

use std::path::Path;

use super::output::Failure;
use tenon_compiler::io::Outputs;
use tenon_compiler::ir::Module;
use tenon_compiler::passes::Reproducer;
use tenon_compiler::text::{self, TextForm};

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
    let form = TextForm { has_sources, ..TextForm::IN_FILES };
    Ok(text::write_module_below(comments, module, path, form, outputs)?)
}
