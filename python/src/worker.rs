//! The process in which the passes of a file of Python run, as `tenon_compiler` speaks with it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use tenon_compiler::border::{PassFailure, Run};
use tenon_compiler::ir::Context;
use tenon_compiler::passes;
use tenon_compiler::registry::{LoadError, Manifest, PassKind, PassRecord};

use crate::module::{Function, Module};
use crate::passes::{call, expect_function, expect_module, traceback};
use crate::terms;

/// Answers the process that started this one, as long as it asks for passes of the file with this digest.
///
/// `load(text, manifest)` runs the text that was checked, and gives for each pass of the manifest, which is JSON, a function: of a
/// module and the options as JSON, or of a function, its module and these.
#[pyfunction]
pub(crate) fn serve(py: Python<'_>, file: PathBuf, sha256: &str, load: Py<PyAny>) -> PyResult<()> {
    let open = |text: &str, manifest: &Manifest| opened(&file, &load, text, manifest);
    Ok(py.detach(|| passes::serve_passes_of_text(&file, sha256, open))?)
}

/// Why a file cannot be used, with its name.
struct Refused(String);

impl From<LoadError> for Refused {
    fn from(error: LoadError) -> Refused {
        Refused(error.to_string())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn opened(
    file: &Path,
    load: &Py<PyAny>,
    text: &str,
    manifest: &Manifest,
) -> Result<Vec<passes::Pass>, Refused> {
    let records = serde_json::to_string(manifest).map_err(|error| Refused(error.to_string()))?;
    let loaded = Python::attach(|py| {
        let bodies = load.call1(py, (text, records)).and_then(|all| all.extract(py));
        bodies.map_err(|error| traceback(py, &error))
    });
    let bodies: Vec<Py<PyAny>> =
        loaded.map_err(|what| Refused(format!("{}: {what}", file.display())))?;
    Ok(manifest.passes.iter().zip(bodies).map(|(record, body)| pass(record, body)).collect())
}

fn pass(record: &PassRecord, body: Py<PyAny>) -> passes::Pass {
    let name = &record.name;
    if record.kind == PassKind::Module {
        return passes::Pass::module(name, move |module, run| {
            failing(|py| {
                let given = (Module::from(module.clone()), options(run));
                expect_module(&body.call1(py, given)?.into_bound(py))
            })
        });
    }
    let on_one = move |function: &_, module: &tenon_compiler::ir::Module, run: &Run| {
        failing(|py| {
            let function = Function { function: Arc::clone(function) };
            let given = (function, Module::from(module.clone()), options(run));
            expect_function(&body.call1(py, given)?.into_bound(py))
        })
    };
    match record.kind {
        PassKind::Prim => passes::Pass::prim(name, on_one),
        PassKind::Function | PassKind::Module => passes::Pass::function(name, on_one),
    }
}

fn failing<T>(body: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, PassFailure> {
    call(|_| {}, body)
}

/// The options that the pass runs with, as JSON.
fn options(run: &Run) -> String {
    terms::dict(run.cx.terms(), run.options).to_string()
}
