//! Compiled models that run.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use tenon_host::executable::{self, LinkForm};
use tenon_host::io::{InputFiles, Outputs};
use tenon_host::runtime::dlpack::{TensorBuffer, TensorRef};
use tenon_host::runtime::model::{Model, ModelError, RunContext};
use tenon_host::runtime::parallel::ThreadPool;

use crate::arrays::Array;
use crate::errors::failure;
use crate::given::Given;

/// A run that is shorter than this keeps the interpreter: another thread that waits for it could hold it for longer.
const SHORT: Duration = Duration::from_micros(5);

/// A compiled model. Threads may run it at once, each with memory of its own.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Executable {
    /// None for one that was loaded: what it was made of lies in its library.
    code: Option<executable::Executable>,
    path: Option<PathBuf>,
    model: Arc<Model>,
    pool: Option<ThreadPool>,
    /// Memory that no run uses at present.
    idle: Mutex<Vec<RunContext<Arc<Model>>>>,
    /// How long the last run took, in nanoseconds.
    last: AtomicU64,
    copies: AtomicU64,
}

impl Executable {
    pub(crate) fn of_code(code: executable::Executable, threads: usize) -> PyResult<Executable> {
        let model = code.jit().map_err(|error| failure("CompileError", &error))?;
        Executable::new(Some(code), None, model, threads)
    }

    fn new(
        code: Option<executable::Executable>,
        path: Option<PathBuf>,
        model: Model,
        threads: usize,
    ) -> PyResult<Executable> {
        let pool = match NonZeroUsize::new(threads) {
            None => Some(ThreadPool::with_all_threads()?),
            Some(NonZeroUsize::MIN) => None,
            Some(threads) => Some(ThreadPool::new(threads)?),
        };
        let last = AtomicU64::new(u64::MAX);
        let (idle, copies) = (Mutex::default(), AtomicU64::new(0));
        Ok(Executable { code, path, model: Arc::new(model), pool, idle, last, copies })
    }

    fn given(&self, inputs: &[Bound<'_, PyAny>]) -> PyResult<Vec<Given>> {
        let specs = self.model.inputs();
        if inputs.len() != specs.len() {
            let (expected, found) = (specs.len(), inputs.len());
            let error = ModelError::Count { expected, found, inputs: specs.to_vec() };
            return Err(failure("RunError", &error));
        }
        let given = inputs.iter().zip(specs).map(|(input, spec)| Given::of(input, spec));
        let given = given.collect::<PyResult<Vec<Given>>>()?;
        let copies = given.iter().filter(|given| given.is_copy()).count();
        self.copies.fetch_add(copies as u64, Ordering::Relaxed);
        Ok(given)
    }

    /// Runs it once, in memory that is idle.
    fn once(&self, inputs: &[TensorRef<'_>]) -> Result<Vec<TensorBuffer>, ModelError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut context = match idle {
            Some(context) => context,
            None => RunContext::new(self.model.clone())?,
        };
        let start = Instant::now();
        context.run(inputs, self.pool.as_ref())?;
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(nanoseconds, Ordering::Relaxed);
        let outputs = context.take_outputs()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(context);
        Ok(outputs)
    }
}

#[pymethods]
impl Executable {
    /// Opens a library that Tenon has made.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, threads: usize) -> PyResult<Executable> {
        let model = py.detach(|| Model::open(&path));
        let model = model.map_err(|error| failure("RunError", &error))?;
        Executable::new(None, Some(path), model, threads)
    }

    /// Runs it on arrays in the order of its inputs.
    fn run(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Array>> {
        let given = self.given(&inputs)?;
        let tensors: Vec<TensorRef<'_>> = given.iter().map(Given::tensor).collect();
        let is_short = u128::from(self.last.load(Ordering::Relaxed)) < SHORT.as_nanos();
        let outputs = match is_short {
            true => self.once(&tensors),
            false => py.detach(|| self.once(&tensors)),
        };
        let outputs = outputs.map_err(|error| failure("RunError", &error))?;
        let outputs = outputs.into_iter().zip(self.model.outputs());
        Ok(outputs.map(|(buffer, spec)| Array::new(buffer, spec)).collect())
    }

    /// Seconds of each of `repeat` measurements of `number` runs, an average each; outputs stay where they are.
    fn time(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        number: u32,
        repeat: u32,
    ) -> PyResult<Vec<f64>> {
        let given = self.given(&inputs)?;
        let tensors: Vec<TensorRef<'_>> = given.iter().map(Given::tensor).collect();
        let timed = py.detach(|| {
            let mut context = RunContext::new(self.model.clone())?;
            context.run(&tensors, self.pool.as_ref())?;
            let mut seconds = Vec::with_capacity(repeat as usize);
            for _ in 0..repeat {
                let start = Instant::now();
                for _ in 0..number {
                    context.run(&tensors, self.pool.as_ref())?;
                }
                seconds.push(start.elapsed().as_secs_f64() / f64::from(number.max(1)));
            }
            Ok(seconds)
        });
        timed.map_err(|error: ModelError| failure("RunError", &error))
    }

    /// Inputs, outputs and memory, as JSON.
    fn signature(&self) -> PyResult<String> {
        let text = serde_json::to_string(self.model.signature());
        text.map_err(|error| failure("Error", &error))
    }

    /// Writes a library, or an object, and its C header beside it.
    fn export(
        &self,
        py: Python<'_>,
        path: PathBuf,
        is_object: bool,
        prefix: Option<&str>,
    ) -> PyResult<()> {
        let Some(code) = &self.code else {
            let from = self.path.as_deref().unwrap_or(&path).display().to_string();
            let why = format!("{from} was loaded, and is a library already: copy it");
            return Err(failure("CompileError", &why));
        };
        let form = if is_object { LinkForm::Object } else { LinkForm::Library };
        let written =
            py.detach(|| code.export(&path, form, prefix, Outputs::sparing(InputFiles::default())));
        written.map(drop).map_err(|error| failure("CompileError", &error))
    }

    /// The file it was loaded from.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// How many threads a run uses.
    #[getter]
    fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, ThreadPool::threads)
    }

    /// How many inputs were copied so far, because their elements did not lie one behind the other.
    #[getter]
    fn copied_inputs(&self) -> u64 {
        self.copies.load(Ordering::Relaxed)
    }
}
