//! Compiled models that run.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use serde_json::{Value, json};
use tenon_compiler::executable::{self, ExportOptions, LinkForm};
use tenon_compiler::io::{InputFiles, Outputs};
use tenon_compiler::runtime::dlpack::{TensorBuffer, TensorRef};
use tenon_compiler::runtime::functions::{Library, OpenOptions};
use tenon_compiler::runtime::model::{Model, ModelError, RunContext};
use tenon_compiler::runtime::parallel::ThreadPool;
use tenon_compiler::runtime::profile;
use tenon_compiler::runtime::signature::{TensorSpec, data_type};

use crate::arrays::Array;
use crate::errors::failure;
use crate::given::Given;
use crate::state::{Flag, State};

/// A flag that nobody sets.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A run that is shorter than this keeps the interpreter: another thread that waits for it could hold it for longer.
const SHORT: Duration = Duration::from_micros(5);

/// A function of a compiled model. Threads may run it at once, each with memory of its own.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Executable {
    /// None for one that was loaded: what it was made of lies in its library.
    code: Option<Arc<executable::Executable>>,
    /// Whether the code takes times of its kernels.
    is_profiled: bool,
    path: Option<PathBuf>,
    library: Library,
    model: Arc<Model>,
    pool: Option<Arc<ThreadPool>>,
    /// Memory that no run uses at present.
    idle: Mutex<Vec<RunContext<Arc<Model>>>>,
    /// How long the last run took, in nanoseconds.
    last: AtomicU64,
    copies: AtomicU64,
}

impl Executable {
    pub(crate) fn of_code(
        code: executable::Executable,
        is_profiled: bool,
        threads: usize,
    ) -> PyResult<Executable> {
        let library = code.load().map_err(|error| failure("CompileError", &error))?;
        let code = Some(Arc::new(code));
        let made = Executable::new(code, None, library, pool_of(threads)?, None)?;
        Ok(Executable { is_profiled, ..made })
    }

    /// The function of a name, or else the first, which is the one that is meant where nobody names one.
    fn new(
        code: Option<Arc<executable::Executable>>,
        path: Option<PathBuf>,
        library: Library,
        pool: Option<Arc<ThreadPool>>,
        name: Option<&str>,
    ) -> PyResult<Executable> {
        let name = name.unwrap_or(&library.functions()[0].function);
        let model = library.function(name).map_err(|error| failure("RunError", &error))?;
        let last = AtomicU64::new(u64::MAX);
        let (idle, copies) = (Mutex::default(), AtomicU64::new(0));
        let (model, is_profiled) = (Arc::new(model), false);
        Ok(Executable { code, is_profiled, path, library, model, pool, idle, last, copies })
    }

    /// What it is made of, for who writes it to a path.
    fn code(&self, path: &Path) -> PyResult<&executable::Executable> {
        let from = self.path.as_deref().unwrap_or(path).display();
        let why = || format!("{from} was loaded, and is a library already: copy it");
        self.code.as_deref().ok_or_else(|| failure("CompileError", &why()))
    }

    fn given(&self, inputs: &[Bound<'_, PyAny>]) -> PyResult<Vec<Given>> {
        self.given_for(inputs, self.model.inputs())
    }

    /// What is given for some of the inputs.
    fn given_for(&self, inputs: &[Bound<'_, PyAny>], specs: &[TensorSpec]) -> PyResult<Vec<Given>> {
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

    /// Runs it once.
    fn once(
        &self,
        inputs: &[TensorRef<'_>],
        flag: &AtomicBool,
    ) -> Result<Vec<TensorBuffer>, ModelError> {
        self.in_idle_memory(|context| {
            context.run_until(inputs, self.pool.as_deref(), flag)?;
            Ok(())
        })
    }

    /// Runs it in memory that is idle; the outputs come back.
    fn in_idle_memory(
        &self,
        run: impl FnOnce(&mut RunContext<Arc<Model>>) -> Result<(), ModelError>,
    ) -> Result<Vec<TensorBuffer>, ModelError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut context = match idle {
            Some(context) => context,
            None => RunContext::new(self.model.clone())?,
        };
        let start = Instant::now();
        run(&mut context)?;
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(nanoseconds, Ordering::Relaxed);
        let outputs = context.take_outputs()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(context);
        Ok(outputs)
    }
}

/// The threads of a run; none where it uses the one that calls.
fn pool_of(threads: usize) -> PyResult<Option<Arc<ThreadPool>>> {
    let pool = match NonZeroUsize::new(threads) {
        None => Some(ThreadPool::with_all_threads()?),
        Some(NonZeroUsize::MIN) => None,
        Some(threads) => Some(ThreadPool::new(threads)?),
    };
    Ok(pool.map(Arc::new))
}

#[pymethods]
impl Executable {
    /// Opens a library that Tenon has made; of one for several processors the code for the one that is named, or the best. Its
    /// weights, if it does not hold them, lie beside it or in the file that is named.
    #[staticmethod]
    #[pyo3(signature = (path, threads, processor = None, weights = None))]
    pub(crate) fn open(
        py: Python<'_>,
        path: PathBuf,
        threads: usize,
        processor: Option<String>,
        weights: Option<PathBuf>,
    ) -> PyResult<Executable> {
        let options = OpenOptions { processor, weights };
        let library = py.detach(|| Library::open_with(&path, &options));
        let library = library.map_err(|error| failure("RunError", &error))?;
        Executable::new(None, Some(path), library, pool_of(threads)?, None)
    }

    /// Another function of the same code, on the same threads.
    fn function(&self, name: &str) -> PyResult<Executable> {
        let (code, path, pool) = (self.code.clone(), self.path.clone(), self.pool.clone());
        let made = Executable::new(code, path, self.library.clone(), pool, Some(name))?;
        Ok(Executable { is_profiled: self.is_profiled, ..made })
    }

    /// The names of all functions, and whether the first is the one that is meant where nobody names one.
    fn functions(&self) -> (Vec<String>, bool) {
        let names = self.library.functions().iter().map(|it| it.function.clone());
        (names.collect(), self.library.info().has_default)
    }

    /// Runs it on arrays in the order of its inputs, until the flag is set.
    #[pyo3(signature = (inputs, flag = None))]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        flag: Option<&Flag>,
    ) -> PyResult<Vec<Array>> {
        let given = self.given(&inputs)?;
        let tensors: Vec<TensorRef<'_>> = given.iter().map(Given::tensor).collect();
        let is_short = u128::from(self.last.load(Ordering::Relaxed)) < SHORT.as_nanos();
        let flag = flag.map_or(&NEVER, |flag| &flag.0);
        let outputs = match is_short {
            true => self.once(&tensors, flag),
            false => py.detach(|| self.once(&tensors, flag)),
        };
        let outputs = outputs.map_err(|error| failure("RunError", &error))?;
        let outputs = outputs.into_iter().zip(self.model.outputs());
        Ok(outputs.map(|(buffer, spec)| Array::new(buffer, spec)).collect())
    }

    /// Copies of arrays for the inputs that are updated in place, in their order; those that become longer have room for so many.
    fn state(&self, inputs: Vec<Bound<'_, PyAny>>, room: Option<i64>) -> PyResult<State> {
        let signature = self.model.signature();
        let pairs = &signature.in_place;
        let specs: Vec<TensorSpec> =
            pairs.iter().map(|pair| signature.inputs[pair[0]].clone()).collect();
        if specs.is_empty() {
            return Err(failure("RunError", &"the model updates no input in place"));
        }
        let given = self.given_for(&inputs, &specs)?;
        let mut buffers = Vec::with_capacity(specs.len());
        for ((given, pair), spec) in given.iter().zip(pairs).zip(&specs) {
            let tensor = given.tensor();
            let (bytes, shape, dtype) = (tensor.bytes(), tensor.shape(), tensor.dtype());
            if Some(dtype) != data_type(spec.dtype) || !spec.takes(shape) {
                let found = format!("an array of the shape {shape:?}");
                let error = ModelError::Mismatch { expected: spec.clone(), found };
                return Err(failure("RunError", &error));
            }
            let buffer = match signature.grows.iter().find(|it| it[..2] == pair[..]) {
                None => TensorBuffer::from_bytes(bytes, shape, dtype),
                Some(&[.., axis]) => {
                    let Some(room) = room else {
                        let why = format!(
                            "input {spec} becomes longer: say for how much there is to be room, room=1024"
                        );
                        return Err(failure("RunError", &why));
                    };
                    TensorBuffer::from_bytes_with_room(bytes, shape, axis, room, dtype)
                }
            };
            buffers.push(buffer.map_err(|error| failure("RunError", &error))?);
        }
        Ok(State::new(buffers, specs))
    }

    /// Runs it on a state, which it updates, and on arrays for the other inputs; the other outputs come back.
    #[pyo3(signature = (inputs, state, flag = None))]
    fn run_in_place(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        state: &State,
        flag: Option<&Flag>,
    ) -> PyResult<Vec<Array>> {
        let pairs = &self.model.signature().in_place;
        let all = self.model.inputs().iter().enumerate();
        let others = all.filter(|(at, _)| pairs.iter().all(|pair| pair[0] != *at));
        let specs: Vec<TensorSpec> = others.map(|(_, spec)| spec.clone()).collect();
        let given = self.given_for(&inputs, &specs)?;
        let tensors: Vec<TensorRef<'_>> = given.iter().map(Given::tensor).collect();
        let (flag, pool) = (flag.map_or(&NEVER, |flag| &flag.0), self.pool.as_deref());
        let outputs = py.detach(|| {
            state.with(|buffers| {
                self.in_idle_memory(|context| {
                    context.run_in_place_until(&tensors, buffers, pool, flag)?;
                    Ok(())
                })
            })
        })?;
        let outputs = outputs.map_err(|error| failure("RunError", &error))?;
        let outputs = outputs.into_iter().zip(self.model.outputs()).enumerate();
        let given_back = outputs.filter(|(at, _)| pairs.iter().all(|pair| pair[1] != *at));
        Ok(given_back.map(|(_, (buffer, spec))| Array::new(buffer, spec)).collect())
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
            context.run(&tensors, self.pool.as_deref())?;
            let mut seconds = Vec::with_capacity(repeat as usize);
            for _ in 0..repeat {
                let start = Instant::now();
                for _ in 0..number {
                    context.run(&tensors, self.pool.as_deref())?;
                }
                seconds.push(start.elapsed().as_secs_f64() / f64::from(number.max(1)));
            }
            Ok(seconds)
        });
        timed.map_err(|error: ModelError| failure("RunError", &error))
    }

    /// Milliseconds of each call of a kernel, the mean of some runs, with what it came from: a list of objects as JSON.
    fn profile(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        number: u32,
    ) -> PyResult<String> {
        let Some(code) = self.code.as_ref().filter(|_| self.is_profiled) else {
            let why = "the code takes no times of its kernels: compile the model with profile=True";
            return Err(failure("RunError", &why));
        };
        let given = self.given(&inputs)?;
        let tensors: Vec<TensorRef<'_>> = given.iter().map(Given::tensor).collect();
        let taken = py.detach(|| {
            let mut context = RunContext::new(self.model.clone())?;
            context.run(&tensors, self.pool.as_deref())?;
            // What was run before on this thread is not meant.
            profile::take();
            for _ in 0..number {
                context.run(&tensors, self.pool.as_deref())?;
            }
            Ok(profile::take())
        });
        let taken = taken.map_err(|error: ModelError| failure("RunError", &error))?;
        let mut sums = vec![0.0; code.kernel_runs().len()];
        for &(call, time) in &taken.calls {
            if let Some(sum) = sums.get_mut(call) {
                *sum += time.as_secs_f64() * 1e3;
            }
        }
        let rows = code.kernel_runs().iter().zip(sums).map(|(run, sum)| {
            let rule = run.scheduled.as_ref().map(|told| &told.rule);
            let mean = sum / taken.runs.max(1) as f64;
            json!({ "kernel": run.symbol, "ms": mean, "from": run.came_from, "rule": rule })
        });
        Ok(Value::Array(rows.collect()).to_string())
    }

    /// Inputs, outputs and memory, as JSON.
    fn signature(&self) -> PyResult<String> {
        let text = serde_json::to_string(self.model.signature());
        text.map_err(|error| failure("Error", &error))
    }

    /// Whether a file is an executable that was saved, or is called so.
    #[staticmethod]
    fn is_saved(path: PathBuf) -> bool {
        executable::is_saved(&path)
    }

    /// Writes all that it is made of to a file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let code = self.code(&path)?;
        let written = py.detach(|| code.save(&path, Outputs::default()));
        written.map_err(|error| failure("CompileError", &error))
    }

    /// Writes a library, or an object, and its C header beside it; and the constants, if a file for them is named.
    #[pyo3(signature = (path, is_object, prefix, weights = None))]
    fn export(
        &self,
        py: Python<'_>,
        path: PathBuf,
        is_object: bool,
        prefix: Option<&str>,
        weights: Option<PathBuf>,
    ) -> PyResult<()> {
        let code = self.code(&path)?;
        let form = if is_object { LinkForm::Object } else { LinkForm::Library };
        let options = ExportOptions { form, prefix, weights: weights.as_deref() };
        let written = py
            .detach(|| code.export_with(&path, &options, Outputs::sparing(InputFiles::default())));
        written.map(drop).map_err(|error| failure("CompileError", &error))
    }

    /// The file that its weights lie in, if it was loaded and does not hold them.
    #[getter]
    fn weights_path(&self) -> Option<PathBuf> {
        self.library.weights_path().map(Path::to_owned)
    }

    /// The file it was loaded from.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// How many threads a run uses.
    #[getter]
    fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.threads())
    }

    /// How many inputs were copied so far, because their elements did not lie one behind the other.
    #[getter]
    fn copied_inputs(&self) -> u64 {
        self.copies.load(Ordering::Relaxed)
    }
}
