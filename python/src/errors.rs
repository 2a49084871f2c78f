//! What is told of failures: the package's exceptions, which hold diagnostics.

use pyo3::prelude::*;
use serde_json::Value;
use tenon_compiler::diagnostics::{Diagnostic, Diagnostics};
use tenon_compiler::session::SessionError;

/// The exception `class` of `tenon._errors`, with all that is to be told.
pub(crate) fn exception(class: &str, told: &Diagnostics) -> PyErr {
    Python::attach(|py| made(py, class, told).unwrap_or_else(|error| error))
}

/// The same of a message without a place.
pub(crate) fn failure(class: &str, error: &dyn std::fmt::Display) -> PyErr {
    exception(class, &Diagnostic::error(error.to_string()).into())
}

/// What a session says.
pub(crate) fn of_session(error: &SessionError) -> PyErr {
    let class = match error {
        SessionError::Module(_) | SessionError::Import(_) => "ModelError",
        SessionError::Plan(_) | SessionError::Lookup(_) | SessionError::Instrument(_) => {
            "PipelineError"
        }
        SessionError::Passes { .. } => "PassError",
        SessionError::Code { .. } | SessionError::Validate(_) => "CompileError",
        SessionError::Cache(_) | SessionError::File(_) => "Error",
    };
    exception(class, &error.to_diagnostics())
}

fn made(py: Python<'_>, class: &str, told: &Diagnostics) -> PyResult<PyErr> {
    let class = py.import("tenon._errors")?.getattr(class)?;
    let each: Vec<Value> = told.0.iter().map(Diagnostic::to_json).collect();
    let made = class.call1((told.render(false), Value::from(each).to_string()))?;
    Ok(PyErr::from_value(made))
}
