//! The session: reading, passes, code.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use tenon_compiler::executable::{CompileOptions, LinkForm};
use tenon_compiler::ir::Module as IrModule;
use tenon_compiler::passes::Instrument;
use tenon_compiler::plan::DimRange;
use tenon_compiler::session::{
    Dims, FileJob, Installation, Model, Observer, Options, Pipeline, SessionError, Validation,
    Watch,
};
use tenon_compiler::target::{Target, Targets};
use tenon_compiler::tune::{Budget, TuneError, Tuning};

use crate::errors::{exception, failure, of_session};
use crate::executable::Executable;
use crate::extensions::{Op, Rule, extended};
use crate::instruments::{NativeInstrument, OfPython};
use crate::module::Module;
use crate::passes::{Pass, Raised, named};

/// How long a signal waits at most before it is heard, while the interpreter waits for passes.
const HEARING: Duration = Duration::from_millis(50);

/// The plugins of some registries, and what is done with them.
#[pyclass(frozen, module = "tenon._core")]
pub(crate) struct Session {
    pub(crate) session: tenon_compiler::session::Session,
    installation: Installation,
    registries: Vec<PathBuf>,
}

#[pymethods]
impl Session {
    /// `program` is the command `tenon` of an installation, and `registries` are files above those of the installation, the
    /// system and the user. `interpreter` runs passes in files of Python, if the registry names none. `ops` and `rules` are there
    /// besides those of plugins.
    #[new]
    fn new(
        program: PathBuf,
        registries: Vec<PathBuf>,
        interpreter: Option<String>,
        ops: Vec<Op>,
        rules: Vec<Rule>,
    ) -> PyResult<Session> {
        let mut installation = Installation::at(program);
        installation.interpreters.extend(interpreter.map(|path| ("py".to_owned(), path)));
        let session = tenon_compiler::session::Session::open(&installation, &registries);
        let session = session.map_err(|error| exception("Error", &error.to_diagnostics()))?;
        let session = session.extended(|book| extended(book, ops, rules));
        let session = session.map_err(|error| failure("Error", &error))?;
        Ok(Session { session, installation, registries })
    }

    /// Reads a file that ends in `.onnx`, or a module's text.
    fn read(&self, py: Python<'_>, path: PathBuf, dims: BTreeMap<String, i64>) -> PyResult<Module> {
        self.model(py, |session| session.read(&path, &Dims::from_iter(dims)))
    }

    /// An ONNX model in memory.
    fn read_onnx(
        &self,
        py: Python<'_>,
        name: PathBuf,
        bytes: Vec<u8>,
        dims: BTreeMap<String, i64>,
    ) -> PyResult<Module> {
        let dims = Dims::from_iter(dims);
        self.model(py, |session| session.read_onnx_bytes(&name, bytes, &dims))
    }

    /// A module's text.
    fn parse(&self, py: Python<'_>, text: &str, name: &str) -> PyResult<Module> {
        self.model(py, |session| session.parse(name, text))
    }

    /// The pass that a text names, with its options: `acme.Fuse{depth=8}`.
    fn named_pass(&self, text: &str) -> PyResult<Pass> {
        named(self.session.registry(), text)
    }

    /// What the plugins say of their passes: a list of objects as JSON. None of their code runs.
    fn passes(&self) -> String {
        let registry = self.session.registry();
        let each = registry.passes().map(|id| {
            let plugin = &registry.plugin_of(id).manifest.plugin;
            json!({
                "pass": registry.record(id),
                "plugin": plugin.id,
                "version": plugin.version,
                "enabled": registry.is_enabled(id),
            })
        });
        Value::from(each.collect::<Vec<_>>()).to_string()
    }

    /// The options that a context may set, with their defaults: a list of objects as JSON.
    fn configs(&self) -> String {
        let declared = tenon_compiler::passes::Settings::declared(self.session.registry());
        let each = declared
            .iter()
            .map(|it| json!({ "key": it.key, "owner": it.owner, "option": it.record }));
        Value::from(each.collect::<Vec<_>>()).to_string()
    }

    /// The passes that a pipeline runs, in order.
    fn plan(&self, options: &Bound<'_, PyDict>) -> PyResult<Vec<String>> {
        let (options, _) = read_options(options)?;
        let plan = self.session.plan(&options);
        let plan =
            plan.map_err(|error| exception("PipelineError", &error.to_diagnostic().into()))?;
        Ok(plan.passes().map(|step| step.pass.name().to_owned()).collect())
    }

    /// Runs the passes of the options over a module.
    fn lower(
        &self,
        py: Python<'_>,
        module: &Module,
        target: &str,
        options: &Bound<'_, PyDict>,
        instruments: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Module> {
        let (options, raised) = read_options(options)?;
        let target = read_target(target)?;
        let instruments = instruments.iter().map(instrument).collect::<PyResult<Vec<_>>>()?;
        let lowered = self.lowered(py, &module.model, &target, &options, instruments, &raised)?;
        Ok(lowered.into())
    }

    /// Runs the passes, and makes code that runs with so many threads.
    fn compile(
        &self,
        py: Python<'_>,
        module: &Module,
        target: &str,
        options: &Bound<'_, PyDict>,
        instruments: Vec<Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<Executable> {
        let (options, raised) = read_options(options)?;
        let mut all = Vec::new();
        for target in read_targets(target)?.all() {
            let instruments = instruments.iter().map(instrument).collect::<PyResult<Vec<_>>>()?;
            let lowered =
                self.lowered(py, &module.model, target, &options, instruments, &raised)?;
            let made = py.detach(|| self.session.generate(&lowered, target, &options));
            all.push(made.map_err(|error| of_session(&error))?);
        }
        let made = self.session.join(all).map_err(|error| of_session(&error))?;
        Executable::of_code(made, options.code.is_profiled, threads)
    }

    /// Compiles the file of a model to the library `output`, or takes that out of the cache of the options, and opens it.
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn compile_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        dims: BTreeMap<String, i64>,
        target: &str,
        options: &Bound<'_, PyDict>,
        output: PathBuf,
        threads: usize,
    ) -> PyResult<Executable> {
        let (options, _) = read_options(options)?;
        let (targets, dims) = (read_targets(target)?, Dims::from_iter(dims));
        let (targets, form, prefix, weights) = (&targets, LinkForm::Library, None, None);
        let (model, dims, output) = (&path, &dims, &output);
        let job = FileJob { model, dims, targets, output, form, prefix, weights };
        let run = |watch: &mut Watch<'_>| self.session.compile_file(&job, &options, watch);
        watched(py, Vec::new(), &[], run)?;
        Executable::open(py, output.clone(), threads, None, None)
    }

    /// Opens an executable that was saved, which runs with so many threads.
    fn load(&self, py: Python<'_>, path: PathBuf, threads: usize) -> PyResult<Executable> {
        let made = py.detach(|| self.session.load(&path)).map_err(|error| of_session(&error))?;
        Executable::of_code(made, false, threads)
    }

    /// Measures which schedules of a module's programs are fastest, keeps what it finds in the file `db`, and says what came of
    /// it as JSON. A limit that is None is none.
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn tune(
        &self,
        py: Python<'_>,
        module: &Module,
        target: &str,
        options: &Bound<'_, PyDict>,
        db: PathBuf,
        trials: Option<usize>,
        seconds: Option<f64>,
        threads: NonZeroUsize,
        only: Vec<String>,
    ) -> PyResult<String> {
        let (options, _) = read_options(options)?;
        let target = read_target(target)?;
        let time = seconds.map(Duration::try_from_secs_f64).transpose();
        let time = time.map_err(|error| PyValueError::new_err(format!("time: {error}")))?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let run = || {
            let Session { session, installation, registries } = self;
            let tuning = Tuning::new(session, installation, registries, &target, threads, &db);
            let tuning = tuning.within(Budget { trials, time }).only(only);
            tuning.cancelled_by(cancelled.clone()).run(&module.model, &options, &mut |_| {})
        };
        let (outcome, signal) = while_hearing(py, &cancelled, run)?;
        if let Some(signal) = signal {
            return Err(signal);
        }
        let outcome = outcome.map_err(|error| match &error {
            TuneError::Session(error) => of_session(error),
            _ => failure("Error", &error),
        })?;
        Ok(json!(outcome).to_string())
    }
}

impl Session {
    fn model(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&tenon_compiler::session::Session) -> Result<Model, SessionError> + Send,
    ) -> PyResult<Module> {
        let model = py.detach(|| read(&self.session)).map_err(|error| of_session(&error))?;
        Ok(Module { model })
    }

    /// Runs the passes on a thread, while this one hears signals.
    fn lowered(
        &self,
        py: Python<'_>,
        model: &Model,
        target: &Target,
        options: &Options,
        instruments: Vec<Box<dyn Instrument>>,
        raised: &[Arc<Raised>],
    ) -> PyResult<IrModule> {
        let run = |watch: &mut Watch<'_>| self.session.lower(model, target, options, watch);
        watched(py, instruments, raised, run)
    }
}

/// Has a session work on a thread, while this one hears signals. What instruments in Python have raised is the cause of an error.
fn watched<T: Send>(
    py: Python<'_>,
    instruments: Vec<Box<dyn Instrument>>,
    raised: &[Arc<Raised>],
    work: impl FnOnce(&mut Watch<'_>) -> Result<T, SessionError> + Send,
) -> PyResult<T> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut told = Vec::new();
    let (result, signal) = {
        let run = || {
            let observer = Box::new(Told(&mut told));
            let cancelled = Some(cancelled.clone());
            work(&mut Watch { instruments, observer, cancelled })
        };
        while_hearing(py, &cancelled, run)?
    };
    let cause = raised.iter().find_map(|raised| raised.take(&cancelled));
    if let Some(signal) = signal {
        return Err(signal);
    }
    warn(py, &told)?;
    result.map_err(|error| {
        let made = of_session(&error);
        made.set_cause(py, cause);
        made
    })
}

/// Does work on another thread. A signal whose handler raises sets the flag; the second result is what it raised.
fn while_hearing<T: Send>(
    py: Python<'_>,
    cancelled: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<(T, Option<PyErr>)> {
    py.detach(|| {
        thread::scope(|scope| {
            let (done, waits) = channel();
            let worker = scope.spawn(move || {
                let result = work();
                // Nobody waits any more only if the waiting thread has panicked.
                let _ = done.send(());
                result
            });
            let mut signal = None;
            while waits.recv_timeout(HEARING) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    cancelled.store(true, Ordering::Relaxed);
                    signal = Some(error);
                }
            }
            let result = worker.join();
            let result = result.map_err(|_| PyRuntimeError::new_err("Tenon panicked"))?;
            Ok((result, signal))
        })
    })
}

/// What is told becomes warnings.
struct Told<'a>(&'a mut Vec<String>);

impl Observer for Told<'_> {
    fn warns(&mut self, warning: &str) {
        self.0.push(warning.to_owned());
    }
}

fn warn(py: Python<'_>, told: &[String]) -> PyResult<()> {
    let warnings = py.import("warnings")?;
    let class = py.import("tenon._errors")?.getattr("TenonWarning")?;
    told.iter().try_for_each(|text| warnings.call_method1("warn", (text, &class, 3)).map(drop))
}

fn instrument(object: &Bound<'_, PyAny>) -> PyResult<Box<dyn Instrument>> {
    match object.cast::<NativeInstrument>() {
        Ok(native) => Ok(native.get().shared()),
        Err(_) => Ok(Box::new(OfPython::new(object)?)),
    }
}

fn read_targets(text: &str) -> PyResult<Targets> {
    Targets::parse(text).map_err(|error| failure("Error", &error))
}

fn read_target(text: &str) -> PyResult<Target> {
    let target = if text == "native" { Target::native() } else { Target::parse(text) };
    target.map_err(|error| failure("Error", &error))
}

/// Options as Python gives them: a dictionary with some of the names below.
fn read_options(given: &Bound<'_, PyDict>) -> PyResult<(Options, Vec<Arc<Raised>>)> {
    let mut options = Options::default();
    let mut raised = Vec::new();
    for (name, value) in given {
        match name.extract::<&str>()? {
            "pipeline" => (options.pipeline, raised) = read_pipeline(&value)?,
            "opt_level" => options.opt_level = value.extract()?,
            "config" => options.config = value.extract()?,
            "disabled" => options.disabled = value.extract()?,
            "required" => options.required = value.extract()?,
            "instruments" => options.instruments = value.extract()?,
            "verify_each" => options.verify_each = value.extract()?,
            "tune_db" => options.tune_db = value.extract()?,
            "cache" => options.cache = value.extract()?,
            "precision" => options.precision = Some(value.extract()?),
            "weights" => options.weights = Some(value.extract()?),
            "link" => options.code.link = value.extract()?,
            "profile" => options.code.is_profiled = value.extract()?,
            "validate" => {
                options.validate = value.extract::<bool>()?.then_some(Validation::Compiled);
            }
            "function" => {
                let function = value.extract()?;
                options.code = CompileOptions { function, ..options.code };
            }
            "ranges" => {
                let ranges = value.extract::<BTreeMap<String, (i64, Option<i64>)>>()?;
                let range = |(name, (least, most))| (name, DimRange { least, most });
                options.code.ranges = ranges.into_iter().map(range).collect();
            }
            other => return Err(PyRuntimeError::new_err(format!("no option `{other}`"))),
        }
    }
    Ok((options, raised))
}

/// None for no passes, a text, or a pass.
fn read_pipeline(value: &Bound<'_, PyAny>) -> PyResult<(Pipeline, Vec<Arc<Raised>>)> {
    if value.is_none() {
        return Ok((Pipeline::None, Vec::new()));
    }
    if let Ok(pass) = value.cast::<Pass>() {
        let pass = pass.get();
        return Ok((Pipeline::Pass(pass.pass.clone()), pass.raised.clone()));
    }
    match value.extract::<String>()?.as_str() {
        "auto" => Ok((Pipeline::Auto, Vec::new())),
        text => Ok((Pipeline::Text(text.to_owned()), Vec::new())),
    }
}
