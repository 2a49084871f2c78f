//! Passes as values: of plugins, of Python functions, and made of others.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tenon_compiler::border::{PassFailure, Run};
use tenon_compiler::ir;
use tenon_compiler::passes;

use crate::errors::failure;
use crate::module::{Function, Module};

/// A pass. It runs by `Session.lower`.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Pass {
    pub(crate) pass: passes::Pass,
    /// What Python raised within it, or within those that it is made of.
    pub(crate) raised: Vec<Arc<Raised>>,
}

/// What a pass in Python raised, by the run in which it did. A run is known by its flag, which is its own.
#[derive(Default)]
pub(crate) struct Raised(Mutex<HashMap<usize, PyErr>>);

impl Raised {
    pub(crate) fn take(&self, run: &Arc<AtomicBool>) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(run))
    }

    fn keep(&self, run: &Arc<AtomicBool>, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key(run), error);
    }
}

fn key(run: &Arc<AtomicBool>) -> usize {
    Arc::as_ptr(run).addr()
}

#[pymethods]
impl Pass {
    /// A pass over the module: `body(module)` gives another one.
    #[staticmethod]
    fn of_module(name: &str, body: Py<PyAny>) -> Pass {
        let raised = Arc::new(Raised::default());
        let keeper = raised.clone();
        let pass = passes::Pass::module(name, move |module, run| {
            let raised = |error| keeper.keep(&run.cancelled, error);
            call(raised, |py| {
                expect_module(&body.call1(py, (Module::from(module.clone()),))?.into_bound(py))
            })
        });
        Pass { pass, raised: vec![raised] }
    }

    /// A pass over each graph function, or over each tensor program: `body(function, module)` gives another one.
    #[staticmethod]
    fn of_functions(name: &str, over_programs: bool, body: Py<PyAny>) -> Pass {
        let raised = Arc::new(Raised::default());
        let keeper = raised.clone();
        let on_one = move |function: &Arc<ir::Function>, module: &ir::Module, run: &Run| {
            call(
                |error| keeper.keep(&run.cancelled, error),
                |py| {
                    let given = Function { function: function.clone() };
                    let made = body.call1(py, (given, Module::from(module.clone())))?;
                    expect_function(&made.into_bound(py))
                },
            )
        };
        let pass = match over_programs {
            true => passes::Pass::prim(name, on_one),
            false => passes::Pass::function(name, on_one),
        };
        Pass { pass, raised: vec![raised] }
    }

    /// Passes one after the other.
    #[staticmethod]
    fn sequential(passes: Vec<PyRef<'_, Pass>>) -> Pass {
        let raised = passes.iter().flat_map(|pass| pass.raised.clone()).collect();
        Pass { pass: passes::Pass::sequential(passes.iter().map(|it| it.pass.clone())), raised }
    }

    /// The same pass with another name, level, and passes that it needs besides.
    #[pyo3(signature = (name = None, opt_level = None, required = Vec::new()))]
    fn with_info(&self, name: Option<&str>, opt_level: Option<u8>, required: Vec<String>) -> Pass {
        let mut pass = self.pass.clone();
        if let Some(name) = name {
            pass = pass.named(name);
        }
        if let Some(level) = opt_level {
            pass = pass.opt_level(level);
        }
        let pass = required.into_iter().fold(pass, passes::Pass::requires_name);
        Pass { pass, raised: self.raised.clone() }
    }

    #[getter]
    fn name(&self) -> &str {
        self.pass.name()
    }

    #[getter]
    fn opt_level(&self) -> u8 {
        self.pass.level()
    }
}

/// What a pass over the module made.
pub(crate) fn expect_module(made: &Bound<'_, PyAny>) -> PyResult<ir::Module> {
    match made.cast::<Module>() {
        Ok(module) => Ok(module.get().model.module.clone()),
        Err(_) => {
            let found = made.get_type();
            let why = format!("the pass returned {found}, and a Module is expected");
            Err(PyTypeError::new_err(why))
        }
    }
}

/// What a pass over functions made.
pub(crate) fn expect_function(made: &Bound<'_, PyAny>) -> PyResult<Arc<ir::Function>> {
    match made.cast::<Function>() {
        Ok(function) => Ok(function.get().function.clone()),
        Err(_) => Err(PyTypeError::new_err("a pass over functions returns a Function")),
    }
}

/// Calls Python for a pass. What it raises is the pass's failure, with the traceback, and is kept by `raised`.
pub(crate) fn call<T>(
    raised: impl FnOnce(PyErr),
    body: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> Result<T, PassFailure> {
    Python::attach(|py| {
        body(py).map_err(|error| {
            let message = traceback(py, &error);
            raised(error);
            PassFailure::error(message)
        })
    })
}

/// An exception as Python prints it.
pub(crate) fn traceback(py: Python<'_>, error: &PyErr) -> String {
    let lines = py
        .import("traceback")
        .and_then(|module| {
            let parts = (error.get_type(py), error.value(py), error.traceback(py));
            module.call_method1("format_exception", parts)
        })
        .and_then(|lines| lines.extract::<Vec<String>>());
    lines.map_or_else(|_| error.to_string(), |lines| lines.concat().trim_end().to_owned())
}

/// The pass that `text` names in a registry, with options.
pub(crate) fn named(registry: &tenon_compiler::registry::Registry, text: &str) -> PyResult<Pass> {
    let pass = passes::Pass::get(registry, text);
    let pass = pass.map_err(|error| {
        crate::errors::exception("PipelineError", &error.to_diagnostic().into())
    })?;
    Ok(Pass { pass, raised: Vec::new() })
}

/// What went wrong outside of any pass.
pub(crate) fn unknown_instrument(name: &str) -> PyErr {
    failure("PipelineError", &format!("there is no instrument `{name}`"))
}
