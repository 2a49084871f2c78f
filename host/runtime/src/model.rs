//! A compiled function that can be run: one that was compiled in this process, or a library.
//!
//! ```ignore
//! let model = Model::open("resnet50.so".as_ref())?;
//! let outputs = model.run(&[image], Some(&pool))?;
//! ```
//!
//! A [`RunContext`] holds the memory of a run, so that running again allocates nothing; what a function takes while it runs
//! comes from the context's [arena](crate::arena::Arena), which keeps it for the next run.

use std::any::Any;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    arena::{RawArena, Refused},
    cpu::lacking,
    dlpack::{DataType, RawTensor, TensorBuffer, TensorError, TensorRef},
    functions::Library,
    library::LibraryError,
    parallel::{RawParallel, ThreadPool},
    signature::{Extent, ProcessorInfo, Signature, TensorSpec, data_type},
};
use crate::io::FileError;
use tenon_plugin_api::ir::DType;

mod context;

pub use context::RunContext;

/// `<prefix>_run`.
pub type RawRun = unsafe extern "C" fn(
    inputs: *const RawTensor,
    outputs: *mut RawTensor,
    workspace: *mut c_void,
    parallel: *const RawParallel,
) -> i32;

/// `<prefix>_run_until`: the same, which ends as soon as it can with an error when the byte is not 0 any more.
pub type RawRunUntil = unsafe extern "C" fn(
    inputs: *const RawTensor,
    outputs: *mut RawTensor,
    workspace: *mut c_void,
    parallel: *const RawParallel,
    cancelled: *const u8,
) -> i32;

/// `<prefix>_run_in`: the same, which takes memory while it runs.
pub type RawRunIn = unsafe extern "C" fn(
    inputs: *const RawTensor,
    outputs: *mut RawTensor,
    workspace: *mut c_void,
    parallel: *const RawParallel,
    cancelled: *const u8,
    arena: *const RawArena,
) -> i32;

/// `<prefix>_sizes`.
pub type RawSizes =
    unsafe extern "C" fn(inputs: *const RawTensor, extents: *mut i64, workspace: *mut u64) -> i32;

/// Why a model cannot be opened or run.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("{} is not a library that Tenon has made: {reason}", .path.display())]
    NotALibrary { path: PathBuf, reason: String },
    #[error("{} has no code that this machine can run; it needs {}", .path.display(), needs(.needed))]
    NoProcessor { path: PathBuf, needed: Vec<Needed> },
    #[error("{} needs its file of weights: {problem}", .library.display())]
    Weights { library: PathBuf, problem: String },
    #[error("{} has its weights itself: there is no file of them", .path.display())]
    NoWeights { path: PathBuf },
    #[error("this machine cannot run the code; it needs {}", needs(std::slice::from_ref(.0)))]
    Lacking(Needed),
    #[error("the library has no code for a processor `{processor}`; it has some for {}", .found.join(", and for "))]
    UnknownProcessor { processor: String, found: Vec<String> },
    #[error("there is no function `{name}`; the library has {}", names(.found))]
    NoFunction { name: String, found: Vec<String> },
    #[error("the library has no `main`, and it is not said which function is meant; it has {}", names(.found))]
    NoDefault { found: Vec<String> },
    #[error("the model has {expected} inputs ({}), and {found} are given", specs(.inputs))]
    Count { expected: usize, found: usize, inputs: Vec<TensorSpec> },
    #[error("input {expected} is expected, but {found} is given")]
    Mismatch { expected: TensorSpec, found: String },
    #[error("{0}")]
    Symbol(Box<Disagreement>),
    #[error("`{symbol}` is {extent} by input {input}, and the model is compiled for {}", range_text(.range))]
    Range { symbol: String, extent: i64, input: TensorSpec, range: (i64, Option<i64>) },
    #[error("there is no input `{name}`; the model has {}", specs(.inputs))]
    UnknownInput { name: String, inputs: Vec<TensorSpec> },
    #[error("input {0} is missing")]
    MissingInput(TensorSpec),
    #[error("the model updates {} inputs in place ({}), and {found} buffers are given", .updated.len(), specs(.updated))]
    State { found: usize, updated: Vec<TensorSpec> },
    #[error("input {spec} becomes longer where it is, so its buffer needs room along axis {axis}")]
    NoRoom { spec: TensorSpec, axis: usize },
    #[error("no memory: {0}")]
    Memory(#[from] TensorError),
    #[error("{0} cannot be held in an array of this kind")]
    DType(TensorSpec),
    #[error("the call was cancelled")]
    Cancelled,
    #[error("{0}")]
    Limit(Refused),
    #[error("the compiled code reports: {0}")]
    Failed(String),
}

/// A processor that there is code for, and what this machine lacks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    pub target: String,
    /// Features by their names; none where the library does not say what it needs.
    pub lacking: Vec<String>,
}

impl Needed {
    /// What is lacking for a target, as a library says what it needs.
    pub(super) fn of(target: &str, processors: &[ProcessorInfo]) -> Needed {
        let own = processors.iter().find(|it| it.target == target);
        let features = own.into_iter().flat_map(|it| &it.features);
        let lacking = lacking(features.map(String::as_str));
        let lacking = lacking.into_iter().map(str::to_owned).collect();
        Needed { target: target.to_owned(), lacking }
    }
}

fn needs(needed: &[Needed]) -> String {
    let text = |it: &Needed| match &it.lacking[..] {
        [] => it.target.clone(),
        lacking => format!("{}, of which it lacks {}", it.target, names(lacking)),
    };
    needed.iter().map(text).collect::<Vec<_>>().join(", or ")
}

/// Two inputs that say different things of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    pub symbol: String,
    pub inputs: [TensorSpec; 2],
    /// What it is by each of the inputs.
    pub extents: [i64; 2],
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Disagreement { symbol, inputs: [first, second], extents } = self;
        let [before, found] = extents;
        write!(f, "`{symbol}` is {found} by input {second}, but {before} by input {first}")
    }
}

fn range_text(range: &(i64, Option<i64>)) -> String {
    match range {
        (least, Some(most)) => format!("{least} to {most}"),
        (least, None) => format!("{least} or more"),
    }
}

fn names(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => format!("`{}`", names.join("`, `")),
    }
}

fn specs(specs: &[TensorSpec]) -> String {
    match specs {
        [] => "none".to_owned(),
        specs => specs.iter().map(TensorSpec::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// A compiled function with its code. May be run from several threads at once, a context each.
pub struct Model {
    signature: Signature,
    functions: Functions,
    /// Why this machine cannot run it.
    refusal: Option<Needed>,
    /// Keeps the code where it is.
    _code: Arc<dyn Any + Send + Sync>,
}

/// The functions of a compiled model.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    pub run: Run,
    /// None in a library of version 1.
    pub sizes: Option<RawSizes>,
}

/// The function that runs.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Of a library before version 3: what begins comes to its end.
    Plain(RawRun),
    Until(RawRunUntil),
    /// Of a function that takes memory while it runs.
    In(RawRunIn),
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("signature", &self.signature).finish_non_exhaustive()
    }
}

impl Model {
    /// The functions and what keeps them in memory.
    ///
    /// # Safety
    /// The functions must be generated code of this signature and stay where they are while `code` lives.
    pub unsafe fn new(
        signature: Signature,
        functions: Functions,
        code: Arc<dyn Any + Send + Sync>,
    ) -> Model {
        Model { signature, functions, refusal: None, _code: code }
    }

    /// The same; where there is a refusal it cannot be run on this machine, and says so.
    pub(super) fn refused_by(self, refusal: Option<Needed>) -> Model {
        Model { refusal, ..self }
    }

    /// Opens a library, and gives the function that is meant where nobody names one: `main`, or the only one. See
    /// [`Library::open`].
    pub fn open(path: &Path) -> Result<Model, ModelError> {
        Library::open(path)?.main()
    }

    /// Inputs, outputs and memory.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    pub fn inputs(&self) -> &[TensorSpec] {
        &self.signature.inputs
    }

    pub fn outputs(&self) -> &[TensorSpec] {
        &self.signature.outputs
    }

    /// Memory to run it in. What depends on the shapes of inputs is taken by the first run, and by later ones that need
    /// more.
    pub fn context(&self) -> Result<RunContext<&Model>, ModelError> {
        RunContext::new(self)
    }

    /// Outputs before any run. Extents that are not known are zero.
    fn empty_outputs(&self) -> Result<Vec<TensorBuffer>, ModelError> {
        (0..self.outputs().len()).map(|index| self.empty_output(index)).collect()
    }

    fn empty_output(&self, index: usize) -> Result<TensorBuffer, ModelError> {
        let spec = &self.outputs()[index];
        let dtype = data_type(spec.dtype).ok_or_else(|| ModelError::DType(spec.clone()))?;
        let shape: Vec<i64> = spec.shape.iter().map(|extent| extent.known().unwrap_or(0)).collect();
        Ok(TensorBuffer::zeros(&shape, dtype)?)
    }

    /// Runs it once.
    pub fn run(
        &self,
        inputs: &[TensorRef<'_>],
        pool: Option<&ThreadPool>,
    ) -> Result<Vec<TensorBuffer>, ModelError> {
        let mut context = self.context()?;
        context.run(inputs, pool)?;
        Ok(context.outputs)
    }

    /// Checks that this machine can run it, and the number, types and shapes of inputs.
    pub fn check(&self, inputs: &[TensorRef<'_>]) -> Result<(), ModelError> {
        if let Some(needed) = &self.refusal {
            return Err(ModelError::Lacking(needed.clone()));
        }
        let specs = self.inputs();
        if inputs.len() != specs.len() {
            let (expected, found) = (specs.len(), inputs.len());
            return Err(ModelError::Count { expected, found, inputs: specs.to_vec() });
        }
        for (input, spec) in inputs.iter().zip(specs) {
            if Some(input.dtype()) != data_type(spec.dtype) || !spec.takes(input.shape()) {
                let found = format!("{}{:?}", text_of(input.dtype()), input.shape());
                return Err(ModelError::Mismatch { expected: spec.clone(), found });
            }
        }
        let shapes = || specs.iter().zip(inputs.iter().map(TensorRef::shape));
        if !self.signature.ranges.is_empty() {
            self.check_ranges(shapes())?;
        }
        check_symbols(shapes())
    }

    /// What the symbols are for inputs of these shapes that a condition is about, as `, where n is 3 and m is 4`.
    fn symbols_in(&self, condition: &str, shapes: &[&[i64]]) -> String {
        let is_word = |c: char| c.is_alphanumeric() || "._".contains(c);
        let words: Vec<&str> = condition.split(|c| !is_word(c)).collect();
        let mut known: Vec<(&str, i64)> = Vec::new();
        for (input, shape) in self.inputs().iter().zip(shapes) {
            for (extent, &found) in input.shape.iter().zip(*shape) {
                if let Extent::Symbolic(symbol) = extent
                    && words.contains(&symbol.as_str())
                    && !known.iter().any(|(name, _)| name == symbol)
                {
                    known.push((symbol, found));
                }
            }
        }
        let known: Vec<String> =
            known.iter().map(|(symbol, extent)| format!("{symbol} is {extent}")).collect();
        match known.is_empty() {
            true => String::new(),
            false => format!(", where {}", known.join(", ")),
        }
    }

    /// That symbols are in their ranges. One that stands nowhere alone is checked by the function itself.
    fn check_ranges<'s>(
        &self,
        inputs: impl Iterator<Item = (&'s TensorSpec, &'s [i64])>,
    ) -> Result<(), ModelError> {
        for (input, shape) in inputs {
            for (extent, &found) in input.shape.iter().zip(shape) {
                let Extent::Symbolic(symbol) = extent else { continue };
                let Some(&range) = self.signature.ranges.get(symbol) else { continue };
                if found < range.0 || range.1.is_some_and(|most| found > most) {
                    let (symbol, input) = (symbol.clone(), input.clone());
                    return Err(ModelError::Range { symbol, extent: found, input, range });
                }
            }
        }
        Ok(())
    }
}

/// That a symbol is the same in all inputs. What it makes of expressions is checked by the function itself.
fn check_symbols<'s>(
    inputs: impl Iterator<Item = (&'s TensorSpec, &'s [i64])>,
) -> Result<(), ModelError> {
    let mut known: Vec<(&str, i64, &TensorSpec)> = Vec::new();
    for (by, shape) in inputs {
        for (extent, &found) in by.shape.iter().zip(shape) {
            let Extent::Symbolic(symbol) = extent else { continue };
            match known.iter().find(|(name, ..)| name == symbol) {
                Some(&(_, before, before_by)) if before != found => {
                    let (inputs, extents) = ([before_by.clone(), by.clone()], [before, found]);
                    let disagreement = Disagreement { symbol: symbol.clone(), inputs, extents };
                    return Err(ModelError::Symbol(Box::new(disagreement)));
                }
                Some(_) => {}
                None => known.push((symbol, found, by)),
            }
        }
    }
    Ok(())
}

/// A DLPack type in the words of the IR.
fn text_of(dtype: DataType) -> String {
    match DType::all().find(|&known| data_type(known) == Some(dtype)) {
        Some(known) => known.to_string(),
        None => format!("{dtype:?}"),
    }
}
