//! What a model updates in place from call to call, and what stops a call.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use tenon_compiler::runtime::dlpack::TensorBuffer;
use tenon_compiler::runtime::signature::TensorSpec;

use crate::arrays::Array;
use crate::errors::failure;

/// Arrays that calls of a model update where they lie: one for each input that is given back.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct State {
    buffers: Mutex<Vec<TensorBuffer>>,
    specs: Vec<TensorSpec>,
}

impl State {
    pub(crate) fn new(buffers: Vec<TensorBuffer>, specs: Vec<TensorSpec>) -> State {
        State { buffers: Mutex::new(buffers), specs }
    }

    /// Does something with the buffers, which no other call may use meanwhile.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut [TensorBuffer]) -> T) -> PyResult<T> {
        match self.buffers.try_lock() {
            Ok(mut buffers) => Ok(work(&mut buffers)),
            Err(_) => Err(failure("RunError", &"the state is updated by another call at present")),
        }
    }
}

#[pymethods]
impl State {
    /// Copies of the arrays as they are now.
    fn arrays(&self) -> PyResult<Vec<Array>> {
        self.with(|buffers| {
            let one = |(buffer, spec): (&TensorBuffer, &TensorSpec)| {
                let bytes = buffer.to_vec().map_err(|error| failure("RunError", &error))?;
                Array::of_bytes(spec.dtype, buffer.shape(), &bytes)
            };
            buffers.iter().zip(&self.specs).map(one).collect()
        })?
    }

    fn __len__(&self) -> usize {
        self.specs.len()
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self.specs.iter().map(TensorSpec::to_string).collect();
        format!("<tenon.State {}>", names.join(", "))
    }
}

/// A flag that stops the calls that are given it. Any thread may set it.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Flag(pub(crate) AtomicBool);

#[pymethods]
impl Flag {
    #[new]
    fn new() -> Flag {
        Flag(AtomicBool::new(false))
    }

    /// Stops the calls, and those that are begun with it later.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets later calls run again.
    fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    #[getter]
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
