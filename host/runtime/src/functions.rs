//! The functions of a library, by their names.
//!
//! ```ignore
//! let library = Library::open("decoder.so".as_ref())?;
//! let (prefill, decode) = (library.function("prefill")?, library.function("decode")?);
//! ```
//!
//! They share code and constants, which stay while one of them does.

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::{Object, ObjectSymbol};

use super::library::ExportedLibrary;
use super::model::{
    Functions, Model, ModelError, Needed, RawRun, RawRunIn, RawRunUntil, RawSizes, Run,
};
use super::signature::{LibraryInfo, ProcessorInfo, Signature};
use super::weights::{Attached, RawSetWeights, RawWeights, Taking};
use crate::io::Mapping;

/// The fixed name under which a library describes itself.
pub const LIBRARY_INFO: &str = "tenon_library_info";

/// The version of [`RawLibrary`] that is written of code that every processor of the architecture runs.
pub const LIBRARY_VERSION: u32 = 3;

/// The version that is written of code that asks the processor: for one that not every other one is like, or for several.
pub const PROCESSORS_VERSION: u32 = 4;

/// The version that is written of a library whose constants lie in a file.
pub const WEIGHTS_VERSION: u32 = 5;

/// How often a library is opened anew that others replace, with its weights, while it is opened.
const MOST_ATTEMPTS: usize = 16;

/// The version that is written of a library in which a function takes memory while it runs.
pub const ARENA_VERSION: u32 = 6;

/// `struct tenon_library`: what `tenon_library_info()` points to. Newer versions append fields.
#[derive(Debug)]
#[repr(C)]
pub struct RawLibrary {
    /// [`LIBRARY_VERSION`], or a smaller one of an older library, whose structure ends before the fields that came later.
    pub version: u32,
    /// How many functions there are; 0 before version 3, which had one.
    pub count: u32,
    /// What the library says of itself as JSON, a C string.
    pub info: *const c_char,
    /// The function that is meant where nobody names one; null where there is none.
    pub run: Option<RawRun>,
    /// Since version 2.
    pub sizes: Option<RawSizes>,
    /// Since version 3: all functions, that which is meant where nobody names one first.
    pub functions: *const RawFunction,
    /// Since version 4, which libraries have that not every processor runs: those that do, the best first.
    pub processors: *const RawProcessor,
    /// Which of them this machine can run: a bit for each, the lowest of the first.
    pub runnable: Option<unsafe extern "C" fn() -> u64>,
    /// How many there are; none in a library of version 5 or 6 for one.
    pub processor_count: u64,
    /// Since version 5, which libraries have whose constants lie in a file: its name, a C string.
    pub weights_file: *const c_char,
    /// How many bytes it has.
    pub weights_bytes: u64,
    /// What takes it.
    pub set_weights: Option<RawSetWeights>,
    /// What says where it is, once it was taken.
    pub weights: Option<RawWeights>,
    /// Since version 6: for each function what runs it with an arena, null for one that takes no memory; behind these the same for
    /// each of the processors.
    pub run_in: *const Option<RawRunIn>,
}

/// `struct tenon_processor`: the code of a library for a processor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawProcessor {
    /// Its target, a C string.
    pub target: *const c_char,
    /// The functions of the library, made for it.
    pub functions: *const RawFunction,
}

/// `struct tenon_function`: a function of a library.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawFunction {
    /// Its name in the module, a C string.
    pub name: *const c_char,
    pub run: Option<RawRun>,
    pub sizes: Option<RawSizes>,
    pub run_until: Option<RawRunUntil>,
}

/// How a library is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Of one for several processors the one whose code is taken, by the name that its target has for it: `x86-64-v2`; the best that
    /// this machine can run where none is named.
    pub processor: Option<String>,
    /// The file of its weights, where that does not lie beside it.
    pub weights: Option<PathBuf>,
}

/// A library that is open, or code that was made in this process.
#[derive(Clone)]
pub struct Library {
    info: LibraryInfo,
    /// In the order of the info's.
    functions: Vec<Functions>,
    /// What this machine lacks for it.
    refusal: Option<Needed>,
    /// The file that its weights were found in.
    weights: Option<PathBuf>,
    /// Keeps the code where it is.
    code: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Library {
    /// The functions and what keeps them in memory. Where they are for a processor that this machine is none of, none can be run.
    ///
    /// # Safety
    /// The functions must be generated code of these signatures, as many in the same order, and stay where they are while
    /// `code` lives.
    pub unsafe fn new(
        info: LibraryInfo,
        functions: Vec<Functions>,
        code: Arc<dyn Any + Send + Sync>,
    ) -> Library {
        // What has code for several has found one that runs.
        let target = info.functions.first().map_or("", |it| &it.target);
        let refusal = Some(Needed::of(target, &info.processors));
        let refusal = refusal.filter(|needed| !needed.lacking.is_empty());
        Library { info, functions, refusal, weights: None, code }
    }

    /// Opens a library. The file is looked at before anything of it runs, so that only libraries
    /// made by Tenon are opened; whoever made the file decides what its code does. Of one for several processors the best code
    /// runs that this machine can run.
    ///
    /// # Errors
    /// [`ModelError::NoProcessor`] when it can run none, with what it lacks. [`ModelError::Weights`] when its constants lie in a file
    /// beside it that is not there or is another one.
    pub fn open(path: &Path) -> Result<Library, ModelError> {
        Library::open_with(path, &OpenOptions::default())
    }

    /// Opens a library for several processors with the code for one of them, by the name that its target has for it: `x86-64-v2`.
    pub fn open_for(path: &Path, processor: &str) -> Result<Library, ModelError> {
        let processor = Some(processor.to_owned());
        Library::open_with(path, &OpenOptions { processor, ..OpenOptions::default() })
    }

    /// Opens a library with the code and the weights that are named. The weights stay mapped while it, or a function of it, lives.
    ///
    /// # Errors
    /// As those of [`Library::open`].
    pub fn open_with(path: &Path, options: &OpenOptions) -> Result<Library, ModelError> {
        let mut attempts = 1;
        loop {
            let before = file_of(path);
            match Library::opened(path, options) {
                // Another one was written, with weights of its own, while this one was opened.
                Err(ModelError::Weights { .. })
                    if attempts < MOST_ATTEMPTS && before != file_of(path) =>
                {
                    attempts += 1;
                }
                result => return result,
            }
        }
    }

    fn opened(path: &Path, options: &OpenOptions) -> Result<Library, ModelError> {
        let processor = options.processor.as_deref();
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
        if raw.is_null() {
            return Err(not_ours("it has no info"));
        }
        // SAFETY: it points at a constant of the library, which is open; all versions begin with these fields.
        let (version, text) = unsafe { ((*raw).version, (*raw).info) };
        if !(1..=ARENA_VERSION).contains(&version) || text.is_null() {
            let newest = ARENA_VERSION;
            return Err(not_ours(&format!("its version is {version}, not up to {newest}")));
        }
        // SAFETY: not null, and a C string in every library of these versions.
        let text = unsafe { CStr::from_ptr(text) };
        let mut info = LibraryInfo::from_json(text.to_bytes())
            .map_err(|error| not_ours(&format!("its metadata is broken: {error}")))?;
        // SAFETY: a constant of the library, whose structure is that of its version; it is closed with what is attached.
        let weights = unsafe { weights_of(raw, &info, path, options) }?;
        let weights_path = weights.as_ref().and_then(|it| it.path.clone());
        let code: Arc<dyn Any + Send + Sync> = match weights {
            Some(attached) => Arc::new(attached.closing(library)),
            None => Arc::new(library),
        };
        // SAFETY: as above.
        let functions = if unsafe { !has_processors(raw) } {
            if let Some(processor) = processor {
                let (processor, found) = (processor.to_owned(), targets_of(&info));
                return Err(ModelError::UnknownProcessor { processor, found });
            }
            // SAFETY: a constant of the library, whose structure is that of its version.
            unsafe { functions_of(raw) }
        } else {
            // SAFETY: as above, and its constants are those of the version.
            let processors = unsafe { Processors::of(raw) };
            let processors = processors.ok_or_else(|| not_ours("it has no processors"))?;
            let chosen = processors.choose(path, processor, &info.processors)?;
            for function in &mut info.functions {
                function.target.clone_from(&chosen.target);
            }
            chosen.functions
        };
        match functions {
            Some(functions) if functions.len() == info.functions.len() => {
                // SAFETY: the signatures are those of the functions, and the library stays open.
                let library = unsafe { Library::new(info, functions, code) };
                Ok(Library { weights: weights_path, ..library })
            }
            _ => Err(not_ours("it has other functions than it says")),
        }
    }

    /// Inputs, outputs and memory of all functions, that which is meant where nobody names one first.
    pub fn functions(&self) -> &[Signature] {
        &self.info.functions
    }

    /// What the library says of itself.
    pub fn info(&self) -> &LibraryInfo {
        &self.info
    }

    /// The file that its weights lie in, where it does not hold them; nothing either where the program has brought them itself.
    pub fn weights_path(&self) -> Option<&Path> {
        self.weights.as_deref()
    }

    /// The function that is meant where nobody names one: `main`, or the only one.
    pub fn main(&self) -> Result<Model, ModelError> {
        match self.info.has_default {
            true => self.at(0),
            false => Err(ModelError::NoDefault { found: self.names() }),
        }
    }

    /// The function of a name.
    pub fn function(&self, name: &str) -> Result<Model, ModelError> {
        let mut functions = self.info.functions.iter();
        match functions.position(|function| function.function == name) {
            Some(at) => self.at(at),
            None => Err(ModelError::NoFunction { name: name.to_owned(), found: self.names() }),
        }
    }

    fn names(&self) -> Vec<String> {
        self.info.functions.iter().map(|function| function.function.clone()).collect()
    }

    fn at(&self, at: usize) -> Result<Model, ModelError> {
        let (signature, functions) = (self.info.functions[at].clone(), self.functions[at]);
        // SAFETY: by the contract of `new` these belong together, and stay while the code does.
        let model = unsafe { Model::new(signature, functions, self.code.clone()) };
        Ok(model.refused_by(self.refusal.clone()))
    }
}

/// What the file at a path is, where there is one.
fn file_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Whether a library asks for the processor.
///
/// # Safety
/// `raw` points at the structure of a library that is open, as its version has it.
unsafe fn has_processors(raw: *const RawLibrary) -> bool {
    // SAFETY: by contract; all versions have the first field, and those from this one on the second.
    unsafe { (*raw).version >= PROCESSORS_VERSION && (*raw).runnable.is_some() }
}

/// Gives a library its weights, where it has none itself.
///
/// # Safety
/// `raw` points at the structure of a library that is open, as its version has it, and stays so while the result lives.
unsafe fn weights_of(
    raw: *const RawLibrary,
    info: &LibraryInfo,
    path: &Path,
    options: &OpenOptions,
) -> Result<Option<Attached>, ModelError> {
    let named = options.weights.as_deref();
    // SAFETY: by contract; a library of version 5 has the second field, and those whose constants lie in it have nothing there.
    let has_none = unsafe { (*raw).version < WEIGHTS_VERSION || (*raw).weights_file.is_null() };
    if has_none {
        return match named {
            None => Ok(None),
            Some(_) => Err(ModelError::NoWeights { path: path.to_owned() }),
        };
    }
    // SAFETY: a library of this version has the fields.
    let (set, get) = unsafe { ((*raw).set_weights, (*raw).weights) };
    let (Some(set), Some(get), Some(info)) = (set, get, &info.weights) else {
        let reason = "it does not say what its weights are".to_owned();
        return Err(ModelError::NotALibrary { path: path.to_owned(), reason });
    };
    // SAFETY: by contract.
    unsafe { Attached::new(Taking { set, get }, info, path, named) }.map(Some)
}

/// The functions of a library; nothing where one is missing.
///
/// # Safety
/// `raw` points at the structure of a library that is open, as its version has it.
unsafe fn functions_of(raw: *const RawLibrary) -> Option<Vec<Functions>> {
    // SAFETY: by contract; a library of version 6 has the field.
    let taking = unsafe { taking_functions(raw, 0) };
    // SAFETY: by contract; all versions have these fields.
    let (version, count, run) = unsafe { ((*raw).version, (*raw).count, (*raw).run) };
    if version < 3 {
        // SAFETY: a library of version 2 has the field.
        let sizes = if version < 2 { None } else { unsafe { (*raw).sizes } };
        return Some(vec![Functions { run: Run::Plain(run?), sizes }]);
    }
    // SAFETY: a library of version 3 has the field.
    let functions = unsafe { (*raw).functions };
    // SAFETY: a constant of the library with so many elements.
    unsafe { read_functions(functions, count, taking) }
}

/// What runs each function with an arena, of those of all processors, or of one by its number from 1 on.
///
/// # Safety
/// `raw` points at the structure of a library that is open, as its version has it.
unsafe fn taking_functions<'l>(raw: *const RawLibrary, at: usize) -> &'l [Option<RawRunIn>] {
    // SAFETY: by contract; all versions have these fields.
    let (version, count) = unsafe { ((*raw).version, (*raw).count as usize) };
    // SAFETY: a library of version 6 has the field.
    let table = if version < ARENA_VERSION { std::ptr::null() } else { unsafe { (*raw).run_in } };
    match table.is_null() {
        true => &[],
        // SAFETY: a constant of the library with an entry for each function, as often as there are processors and once more.
        false => unsafe { std::slice::from_raw_parts(table.add(at * count), count) },
    }
}

/// The functions of a table, with what runs those that take memory; nothing where one is missing.
///
/// # Safety
/// `functions` points at so many functions of a library that is open.
unsafe fn read_functions(
    functions: *const RawFunction,
    count: u32,
    taking: &[Option<RawRunIn>],
) -> Option<Vec<Functions>> {
    if functions.is_null() {
        return None;
    }
    // SAFETY: by contract.
    let functions = unsafe { std::slice::from_raw_parts(functions, count as usize) };
    let function = |(at, it): (usize, &RawFunction)| {
        let taking = taking.get(at).copied().flatten();
        let run = taking.map(Run::In).or(it.run_until.map(Run::Until)).or(it.run.map(Run::Plain));
        Some(Functions { run: run?, sizes: it.sizes })
    };
    functions.iter().enumerate().map(function).collect()
}

/// The code of a library for several processors.
struct Processors {
    /// The best first.
    all: Vec<Processor>,
    /// A bit for each that this machine can run.
    runnable: u64,
}

/// The code for one of them.
struct Processor {
    target: String,
    functions: Option<Vec<Functions>>,
}

impl Processors {
    /// Those of a library; nothing where it has none.
    ///
    /// # Safety
    /// `raw` points at the structure of a library that is open, of version 4 or later.
    unsafe fn of(raw: *const RawLibrary) -> Option<Processors> {
        // SAFETY: by contract.
        let (functions, raw) = unsafe { ((*raw).count, &*raw) };
        let runnable = raw.runnable?;
        if raw.processors.is_null() || raw.processor_count == 0 {
            return None;
        }
        // SAFETY: a constant of the library with so many elements.
        let processors =
            unsafe { std::slice::from_raw_parts(raw.processors, raw.processor_count as usize) };
        let mut all = Vec::with_capacity(processors.len());
        for (at, processor) in processors.iter().enumerate() {
            if processor.target.is_null() {
                return None;
            }
            // SAFETY: not null, and a C string in every library of this version.
            let target = unsafe { CStr::from_ptr(processor.target) };
            let target = target.to_string_lossy().into_owned();
            // SAFETY: a constant of the library with as many functions as it has.
            let taking = unsafe { taking_functions(raw, at + 1) };
            // SAFETY: as above.
            let functions = unsafe { read_functions(processor.functions, functions, taking) };
            all.push(Processor { target, functions });
        }
        // SAFETY: it takes nothing, and asks the processor alone.
        Some(Processors { all, runnable: unsafe { runnable() } })
    }

    /// The best that runs here, or the one of a name.
    fn choose(
        mut self,
        path: &Path,
        named: Option<&str>,
        told: &[ProcessorInfo],
    ) -> Result<Processor, ModelError> {
        let targets = || self.all.iter().map(|it| it.target.clone()).collect();
        let at = match named {
            None => self.runnable.trailing_zeros() as usize,
            Some(name) => {
                let is_it = |it: &Processor| it.target == name || cpu_of(&it.target) == Some(name);
                let Some(at) = self.all.iter().position(is_it) else {
                    let (processor, found) = (name.to_owned(), targets());
                    return Err(ModelError::UnknownProcessor { processor, found });
                };
                at
            }
        };
        if at >= self.all.len() || self.runnable >> at & 1 == 0 {
            let needed = match named {
                Some(_) => &self.all[at..=at],
                None => &self.all[..],
            };
            let needed = needed.iter().map(|it| Needed::of(&it.target, told)).collect();
            return Err(ModelError::NoProcessor { path: path.to_owned(), needed });
        }
        Ok(self.all.swap_remove(at))
    }
}

/// The name of a target's processor.
fn cpu_of(target: &str) -> Option<&str> {
    target.split(',').find_map(|part| part.strip_prefix("cpu="))
}

/// What a library says that it is for.
fn targets_of(info: &LibraryInfo) -> Vec<String> {
    info.functions.first().map(|it| it.target.clone()).into_iter().collect()
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
