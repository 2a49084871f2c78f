//! A compiled function that can be run: one that was compiled in this process, or a library.
//!
//! ```ignore
//! let model = Model::open("resnet50.so".as_ref())?;
//! let outputs = model.run(&[image], Some(&pool))?;
//! ```
//!
//! A [`Session`] holds the memory of a run, so that running again allocates nothing.

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};

use super::{
    dlpack::{Argument, DataType, RawTensor, TensorBuffer, TensorError, TensorRef},
    library::{ExportedLibrary, LibraryError},
    parallel::{RawParallel, ThreadPool},
    signature::{Signature, TensorSpec, data_type},
    status::{Failure, read_status},
};
use crate::io::{FileError, Mapping};
use crate::ir::DType;

/// The fixed name under which a library describes itself.
pub const LIBRARY_INFO: &str = "tenon_library_info";

/// `<prefix>_run`.
pub type RawRun = unsafe extern "C" fn(
    inputs: *const RawTensor,
    outputs: *mut RawTensor,
    workspace: *mut c_void,
    parallel: *const RawParallel,
) -> i32;

/// `struct tenon_library`: what `tenon_library_info()` points to. Newer versions append fields.
#[derive(Debug)]
#[repr(C)]
pub struct RawLibrary {
    /// 1.
    pub version: u32,
    pub reserved: u32,
    /// The signature as JSON, a C string.
    pub info: *const c_char,
    pub run: Option<RawRun>,
}

/// Why a model cannot be opened or run.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("{} is not a library that Tenon has made: {reason}", .path.display())]
    NotALibrary { path: PathBuf, reason: String },
    #[error("the model has {expected} inputs ({}), and {found} are given", specs(.inputs))]
    Count { expected: usize, found: usize, inputs: Vec<TensorSpec> },
    #[error("input {expected} is expected, but {found} is given")]
    Mismatch { expected: TensorSpec, found: String },
    #[error("there is no input `{name}`; the model has {}", specs(.inputs))]
    UnknownInput { name: String, inputs: Vec<TensorSpec> },
    #[error("input {0} is missing")]
    MissingInput(TensorSpec),
    #[error("no memory: {0}")]
    Memory(#[from] TensorError),
    #[error("{0} cannot be held in an array of this kind")]
    DType(TensorSpec),
    #[error("the compiled code reports: {0}")]
    Failed(String),
}

fn specs(specs: &[TensorSpec]) -> String {
    match specs {
        [] => "none".to_owned(),
        specs => specs.iter().map(TensorSpec::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// A compiled function with its code. May be run from several threads at once, a session each.
pub struct Model {
    signature: Signature,
    run: RawRun,
    /// Keeps the code where it is.
    _code: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("signature", &self.signature).finish_non_exhaustive()
    }
}

impl Model {
    /// A function and what keeps it in memory.
    ///
    /// # Safety
    /// `run` must be generated code of this signature and stay where it is while `code` lives.
    pub unsafe fn new(
        signature: Signature,
        run: RawRun,
        code: Box<dyn Any + Send + Sync>,
    ) -> Model {
        Model { signature, run, _code: code }
    }

    /// Opens a library. The file is looked at before anything of it runs, so that only libraries
    /// made by Tenon are opened; whoever made the file decides what its code does.
    pub fn open(path: &Path) -> Result<Model, ModelError> {
        let not_ours =
            |reason: &str| ModelError::NotALibrary { path: path.to_owned(), reason: reason.into() };
        check_exports(path)?;
        // SAFETY: the user names the library to run its code, and it has the mark of our linker
        // step: it exports our function, and has no constructors of ours or others'.
        let library = unsafe { ExportedLibrary::open(path) }?;
        type Info = unsafe extern "C" fn() -> *const RawLibrary;
        // SAFETY: the type of the function of this name in every library that we link.
        let info: Info = unsafe { library.function(LIBRARY_INFO) }?;
        // SAFETY: it takes nothing and gives the address of a constant.
        let raw = unsafe { info() };
        // SAFETY: it points at a constant of the library, which is open, or at nothing.
        let Some(raw) = (unsafe { raw.as_ref() }) else { return Err(not_ours("it has no info")) };
        if raw.version != 1 || raw.info.is_null() {
            return Err(not_ours(&format!("its version is {}, not 1", raw.version)));
        }
        let Some(run) = raw.run else { return Err(not_ours("it has no function")) };
        // SAFETY: not null, and a C string in every library of this version.
        let text = unsafe { CStr::from_ptr(raw.info) };
        let signature = serde_json::from_slice(text.to_bytes())
            .map_err(|error| not_ours(&format!("its metadata is broken: {error}")))?;
        // SAFETY: the signature is that of the function, and the library stays open.
        Ok(unsafe { Model::new(signature, run, Box::new(library)) })
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

    /// Memory to run it in.
    pub fn session(&self) -> Result<Session<'_>, ModelError> {
        let size = i64::try_from(self.signature.workspace_size).unwrap_or(i64::MAX);
        let workspace = TensorBuffer::zeros(&[size], DataType::U8)?;
        let outputs = self.outputs().iter().map(|spec| {
            let dtype = data_type(spec.dtype).ok_or_else(|| ModelError::DType(spec.clone()))?;
            Ok(TensorBuffer::zeros(&spec.shape, dtype)?)
        });
        Ok(Session { model: self, workspace, outputs: outputs.collect::<Result<_, ModelError>>()? })
    }

    /// Runs it once.
    pub fn run(
        &self,
        inputs: &[TensorRef<'_>],
        pool: Option<&ThreadPool>,
    ) -> Result<Vec<TensorBuffer>, ModelError> {
        let mut session = self.session()?;
        session.run(inputs, pool)?;
        Ok(session.outputs)
    }

    /// Checks the number, types and shapes of inputs.
    pub fn check(&self, inputs: &[TensorRef<'_>]) -> Result<(), ModelError> {
        let specs = self.inputs();
        if inputs.len() != specs.len() {
            let (expected, found) = (specs.len(), inputs.len());
            return Err(ModelError::Count { expected, found, inputs: specs.to_vec() });
        }
        for (input, spec) in inputs.iter().zip(specs) {
            if Some(input.dtype()) != data_type(spec.dtype) || input.shape() != spec.shape {
                let found = format!("{}{:?}", text_of(input.dtype()), input.shape());
                return Err(ModelError::Mismatch { expected: spec.clone(), found });
            }
        }
        Ok(())
    }
}

/// The memory of a model that is run.
#[derive(Debug)]
pub struct Session<'m> {
    model: &'m Model,
    workspace: TensorBuffer,
    outputs: Vec<TensorBuffer>,
}

impl Session<'_> {
    /// Runs the model; the outputs stand until the next run. Without a pool it uses one thread.
    pub fn run(
        &mut self,
        inputs: &[TensorRef<'_>],
        pool: Option<&ThreadPool>,
    ) -> Result<&[TensorBuffer], ModelError> {
        self.model.check(inputs)?;
        let inputs: Vec<Argument<'_>> = inputs.iter().map(TensorRef::as_argument).collect();
        let mut outputs: Vec<Argument<'_>> =
            self.outputs.iter_mut().map(TensorBuffer::as_argument).collect();
        let parallel = pool.map_or(std::ptr::null(), |pool| std::ptr::from_ref(pool.raw()));
        // SAFETY: as many inputs and outputs as the function has, of its types and shapes, which
        // `check` and `session` have seen to; `Argument` is laid out as `DLTensor`. Outputs and
        // workspace are ours alone, of the size and alignment that the function wants. The pool
        // is borrowed, so it lives.
        let status = unsafe {
            (self.model.run)(
                inputs.as_ptr().cast(),
                outputs.as_mut_ptr().cast(),
                self.workspace.bytes_mut().as_mut_ptr().cast(),
                parallel,
            )
        };
        match read_status(status) {
            None => Ok(&self.outputs),
            Some(failure) => Err(ModelError::Failed(self.describe(status, failure))),
        }
    }

    /// The outputs of the last run.
    pub fn outputs(&self) -> &[TensorBuffer] {
        &self.outputs
    }

    fn describe(
        &self,
        status: i32,
        (failure, argument): (Option<Failure>, Option<usize>),
    ) -> String {
        let what = failure.map_or("an unknown failure", Failure::text);
        let all = self.model.inputs().iter().chain(self.model.outputs());
        match argument.and_then(|index| all.clone().nth(index)) {
            Some(spec) => format!("{what} ({spec}, status {status})"),
            None => format!("{what} (status {status})"),
        }
    }
}

/// Refuses a file that does not export [`LIBRARY_INFO`], without running anything of it.
fn check_exports(path: &Path) -> Result<(), ModelError> {
    let not_ours = |reason: String| ModelError::NotALibrary { path: path.to_owned(), reason };
    let bytes = Mapping::open(path)?;
    let file = object::File::parse(&*bytes).map_err(|error| not_ours(error.to_string()))?;
    let mut exports = file.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
    match exports.any(|symbol| symbol.name() == Ok(LIBRARY_INFO)) {
        true => Ok(()),
        false => Err(not_ours(format!("it has no function `{LIBRARY_INFO}`"))),
    }
}

/// A DLPack type in the words of the IR.
fn text_of(dtype: DataType) -> String {
    match DType::all().find(|&known| data_type(known) == Some(dtype)) {
        Some(known) => known.to_string(),
        None => format!("{dtype:?}"),
    }
}
