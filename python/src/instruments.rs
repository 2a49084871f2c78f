//! Instruments: Python's, told by the host, and the host's, held by Python.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tenon_compiler::diagnostics::Diagnostic;
use tenon_compiler::ir::Module as IrModule;
use tenon_compiler::passes::{Instrument, Statistics, StepInfo, StepOutcome, Timing, VerifyEach};

use crate::module::Module;
use crate::passes::{traceback, unknown_instrument};

/// An instrument that is a Python object. A method that its class does not define is not called.
pub(crate) struct OfPython {
    object: Py<PyAny>,
    should_run: bool,
    before: bool,
    after: bool,
}

impl OfPython {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<OfPython> {
        Ok(OfPython {
            should_run: object.hasattr("should_run")?,
            before: object.hasattr("run_before_pass")?,
            after: object.hasattr("run_after_pass")?,
            object: object.clone().unbind(),
        })
    }

    /// Calls a method with a module and what is known of the pass.
    fn call<T>(
        &self,
        method: &str,
        step: StepInfo<'_>,
        module: &IrModule,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, Box<Diagnostic>> {
        Python::attach(|py| {
            let info = (step.step.pass.name(), step.step.pass.level());
            let module = Module::from(module.clone());
            let result = self.object.bind(py).call_method1(method, (module, info));
            let result = result.and_then(|result| read(&result));
            result.map_err(|error| Box::new(Diagnostic::error(traceback(py, &error))))
        })
    }
}

impl Instrument for OfPython {
    fn should_run(
        &mut self,
        step: StepInfo<'_>,
        module: &IrModule,
    ) -> Result<bool, Box<Diagnostic>> {
        if !self.should_run {
            return Ok(true);
        }
        self.call("should_run", step, module, |result| result.is_truthy())
    }

    fn before(&mut self, step: StepInfo<'_>, module: &IrModule) -> Result<(), Box<Diagnostic>> {
        if !self.before {
            return Ok(());
        }
        self.call("run_before_pass", step, module, |_| Ok(()))
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        match outcome {
            StepOutcome::Ran { after, .. } if self.after => {
                self.call("run_after_pass", step, after, |_| Ok(()))
            }
            _ => Ok(()),
        }
    }
}

/// An instrument of the host's, which keeps what it has seen from run to run.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct NativeInstrument(Arc<Mutex<Box<dyn Instrument>>>);

#[pymethods]
impl NativeInstrument {
    /// `timing`, `statistics` or `verify`.
    #[new]
    fn new(name: &str) -> PyResult<NativeInstrument> {
        let instrument: Box<dyn Instrument> = match name {
            "timing" => Box::new(Timing::default()),
            "statistics" => Box::new(Statistics::default()),
            "verify" => Box::new(VerifyEach::default()),
            _ => return Err(unknown_instrument(name)),
        };
        Ok(NativeInstrument(Arc::new(Mutex::new(instrument))))
    }

    /// What it has to say of the runs so far; None for nothing.
    fn report(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).report()
    }
}

impl NativeInstrument {
    pub(crate) fn shared(&self) -> Box<dyn Instrument> {
        Box::new(Shared(self.0.clone()))
    }
}

/// A handle that a run owns.
struct Shared(Arc<Mutex<Box<dyn Instrument>>>);

impl Shared {
    fn with<T>(&self, body: impl FnOnce(&mut dyn Instrument) -> T) -> T {
        body(&mut **self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Instrument for Shared {
    fn enter(&mut self) -> Result<(), Box<Diagnostic>> {
        self.with(|it| it.enter())
    }

    fn should_run(
        &mut self,
        step: StepInfo<'_>,
        module: &IrModule,
    ) -> Result<bool, Box<Diagnostic>> {
        self.with(|it| it.should_run(step, module))
    }

    fn before(&mut self, step: StepInfo<'_>, module: &IrModule) -> Result<(), Box<Diagnostic>> {
        self.with(|it| it.before(step, module))
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        self.with(|it| it.after(step, outcome))
    }

    fn exit(&mut self) -> Result<(), Box<Diagnostic>> {
        self.with(|it| it.exit())
    }

    fn times_functions(&self) -> bool {
        self.with(|it| it.times_functions())
    }
}
