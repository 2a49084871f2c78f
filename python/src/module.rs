//! Modules and functions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use tenon_compiler::diagnostics::{Diagnostics, Source};
use tenon_compiler::ir::{self, Context};
use tenon_compiler::session::Model;
use tenon_compiler::text::{
    TextForm, WeightsPolicy, parse_checked_module, print_function, write_module,
};

use crate::errors::{exception, failure};
use crate::session::Session;

/// A module of functions. It never changes; passes make others.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Module {
    pub(crate) model: Model,
}

impl From<ir::Module> for Module {
    fn from(module: ir::Module) -> Module {
        Module { model: module.into() }
    }
}

impl Module {
    fn module(&self) -> &ir::Module {
        &self.model.module
    }
}

#[pymethods]
impl Module {
    /// A module without functions, whose calls mean the operators of a session.
    #[staticmethod]
    fn empty(session: &Session) -> Module {
        ir::Module::new(session.session.context()).into()
    }

    /// Its text. Constants of more than `inline_limit` elements are left out of it; None leaves none out.
    #[pyo3(signature = (inline_limit = None))]
    fn text(&self, py: Python<'_>, inline_limit: Option<u64>) -> String {
        py.detach(|| tenon_compiler::text::print_module(self.module(), &mut weights(inline_limit)))
    }

    /// Writes its text, with larger constants in a safetensors file beside it.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| write_module(self.module(), &path, TextForm::IN_FILES));
        written.map_err(|error| failure("Error", &error))
    }

    /// Reads a text into the module's context: a pass that gives a module gives one of the same context.
    fn parse(&self, py: Python<'_>, text: &str, name: &str) -> PyResult<Module> {
        let parsed = py
            .detach(|| parse_checked_module(self.module().cx(), &Source::new(name, text)))
            .map_err(|told: Diagnostics| exception("ModelError", &told))?;
        Ok(parsed.into())
    }

    /// The names of its functions, in their order.
    fn names(&self) -> Vec<String> {
        let terms = self.module().cx().terms();
        self.module().iter().map(|(name, _)| terms.str(name).to_owned()).collect()
    }

    /// A function by its name.
    fn function(&self, name: &str) -> PyResult<Function> {
        let function = self.module().get_str(name);
        let function = function.ok_or_else(|| {
            PyKeyError::new_err(format!(
                "the module has no function `{name}`; it has {}",
                self.names().join(", ")
            ))
        })?;
        Ok(Function { function: function.clone() })
    }

    /// The module with these functions in the place of those of their names, or beside the others.
    fn with_functions(&self, functions: HashMap<String, PyRef<'_, Function>>) -> PyResult<Module> {
        let mut module = self.module().clone();
        // In the order of their names, so that the same dictionary gives the same module.
        let mut functions: Vec<_> = functions.into_iter().collect();
        functions.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, function) in functions {
            if !function.function.cx().is_same(module.cx()) {
                let why = format!("function `{name}` is of a module of another context");
                return Err(failure("ModelError", &why));
            }
            module.insert(module.cx().symbol(&name), function.function.clone());
        }
        Ok(module.into())
    }

    /// The module without some functions.
    fn without_functions(&self, names: Vec<String>) -> PyResult<Module> {
        let mut module = self.module().clone();
        for name in names {
            self.function(&name)?;
            module.remove(module.cx().symbol(&name));
        }
        Ok(module.into())
    }

    /// Whether the other computes the same in the same way, names of values aside.
    fn is_structurally_equal(&self, py: Python<'_>, other: &Module) -> bool {
        py.detach(|| self.module().is_structurally_equal(other.module()))
    }

    /// Equal for modules that are structurally equal.
    fn structural_hash(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.module().structural_hash())
    }

    fn __len__(&self) -> usize {
        self.module().len()
    }
}

/// A function of a module.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Function {
    pub(crate) function: Arc<ir::Function>,
}

#[pymethods]
impl Function {
    /// Its text under a name.
    #[pyo3(signature = (name, inline_limit = None))]
    fn text(&self, py: Python<'_>, name: &str, inline_limit: Option<u64>) -> String {
        py.detach(|| print_function(name, &self.function, &mut weights(inline_limit)))
    }

    /// Whether it is a tensor program.
    #[getter]
    fn is_program(&self) -> bool {
        self.function.is_prim()
    }

    /// Whether other modules may not call it.
    #[getter]
    fn is_private(&self) -> bool {
        self.function.is_private()
    }

    fn is_structurally_equal(&self, py: Python<'_>, other: &Function) -> bool {
        py.detach(|| self.function.is_structurally_equal(&other.function))
    }

    fn structural_hash(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.function.structural_hash())
    }
}

fn weights(inline_limit: Option<u64>) -> WeightsPolicy {
    inline_limit.map_or_else(WeightsPolicy::inline, WeightsPolicy::elided)
}
