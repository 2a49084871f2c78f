//! Executables in files: code and constants, from which all that follows is made without compiling again.
//!
//! ```text
//! 0     `TENONEXE`, version of the form, bytes of the description, bytes of the file: 8 bytes each; a digest, 32 bytes
//! 64    the description, JSON: functions, targets, names, and where each object and each constant lies
//! …     objects and constants, each on a boundary of 64
//! ```
//!
//! Numbers are little-endian. The digest is the SHA-256 of the digests of pieces of all that is behind it, which several threads take at
//! once. Constants of the same bytes are there once. A file is mapped, and constants stay where they are.
//!
//! It is native code, so it is loaded only if nobody else can write it, as plugins are. How code finds what is around it may be another
//! way in another version of Tenon, so one that is of another form is compiled again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::backend::FrontCode;
use crate::io::{FileError, Mapping, Mode, Outputs, sha256};
use crate::ir::Bytes;
use crate::object::externals::Externals;
use crate::registry::writers_of_path;
use crate::runtime::signature::LibraryInfo;
use crate::target::Target;

use super::compile::{Executable, MachineCode, Unit};
use super::error::CompileError;

const MAGIC: &[u8; 8] = b"TENONEXE";
/// The version of the form, and of how objects find what is around them.
const VERSION: u64 = 1;
/// Where the description begins.
const HEAD: usize = 64;
/// Everything behind it begins on such a boundary.
const ALIGN: usize = 64;
/// Bytes that one thread digests at a time.
const PIECE: usize = 4 << 20;

/// Why a file is no executable.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SavedError {
    #[error("`{}` is not loaded: {why}; its code runs, so nobody else may be able to change it", .path.display())]
    Untrusted { path: PathBuf, why: String },
    #[error("`{}` is no executable that Tenon has saved", .path.display())]
    Foreign { path: PathBuf },
    #[error("`{}` is an executable of version {found}, and this is a program for version {VERSION}: compile the model again", .path.display())]
    Version { path: PathBuf, found: u64 },
    #[error("`{}` is damaged: {what}; compile the model again", .path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "code that takes times of its kernels runs in the process that has made it, and is not saved"
    )]
    Profiled,
}

/// What a file says of itself.
#[derive(Serialize, Deserialize)]
struct Description {
    /// The version of Tenon that has made it.
    tenon: String,
    /// As libraries have it.
    info: String,
    given: Vec<Option<String>>,
    prefix: Option<String>,
    /// The external functions that it calls.
    #[serde(default)]
    externals: Vec<String>,
    /// The files that define some of them: they are read when it is linked, or put into a process.
    #[serde(default)]
    link: Vec<PathBuf>,
    code: Vec<Code>,
}

/// The code for a target.
#[derive(Serialize, Deserialize)]
struct Code {
    target: String,
    /// The symbols of what runs each function, and of what says its sizes.
    names: Vec<[String; 2]>,
    table: String,
    objects: Vec<Part>,
    constants: Vec<Part>,
}

/// An object or a constant: so many bytes, so far behind the description.
#[derive(Clone, Serialize, Deserialize)]
struct Part {
    name: String,
    at: usize,
    bytes: usize,
}

/// What is known of an executable in a file without loading it.
#[derive(Clone, Debug)]
pub struct SavedDescription {
    /// Its functions, and the processors that it has code for.
    pub info: LibraryInfo,
    /// What the module says that names in C begin with.
    pub prefix: Option<String>,
    /// The external functions that it calls, by their symbols.
    pub externals: Vec<String>,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Whether a file is an executable that was saved, or is called so.
pub fn is_saved(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    let is_named = path.extension().is_some_and(|extension| extension == "exec");
    // A pipe would lose what is read of it.
    let is_file = path.is_file();
    is_named
        || is_file
            && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
            && magic == *MAGIC
}

impl Executable {
    /// Writes it to a file, from which [`Executable::load_from`] makes an equal one. All of `outputs` is published.
    ///
    /// # Errors
    /// When it cannot be written, or takes times of its kernels.
    pub fn save(&self, path: &Path, mut outputs: Outputs) -> Result<(), CompileError> {
        if self.code.iter().any(|code| !code.runs.is_empty()) {
            return Err(SavedError::Profiled.into());
        }
        let mut parts = Parts::default();
        let description = self.described(&mut parts)?;
        let description = serde_json::to_vec(&description).map_err(CompileError::Metadata)?;
        let failed = |cause| FileError::Write { path: path.to_owned(), cause };
        outputs.make(path, Mode::Code, |place| -> Result<(), CompileError> {
            let file = File::options().write(true).open(place).map_err(failed)?;
            let mut file = BufWriter::with_capacity(1 << 16, file);
            parts.write(&description, &mut file).map_err(failed)?;
            file.flush().map_err(failed)?;
            drop(file);
            finish(place, description.len()).map_err(failed)?;
            Ok(())
        })?;
        for (_, constant) in self.code.iter().flat_map(|code| &code.constants) {
            constant.unread();
        }
        outputs.publish()?;
        Ok(())
    }

    /// What is said of it; `parts` are what lies behind that.
    fn described<'a>(&'a self, parts: &mut Parts<'a>) -> Result<Description, CompileError> {
        let code = |code: &'a MachineCode| {
            let objects = code.objects.iter().map(|unit| parts.part(&unit.name, &unit.bytes));
            let objects = objects.collect();
            let constants = code.constants.iter().map(|(name, bytes)| parts.part(name, bytes));
            Code {
                target: code.target.to_string(),
                names: code.names.iter().map(|it| [it.run.clone(), it.sizes.clone()]).collect(),
                table: code.table.clone(),
                constants: constants.collect(),
                objects,
            }
        };
        let code = self.code.iter().map(code).collect();
        Ok(Description {
            tenon: env!("CARGO_PKG_VERSION").to_owned(),
            info: self.info.to_json().map_err(CompileError::Metadata)?,
            given: self.given.clone(),
            prefix: self.prefix.clone(),
            externals: self.externals.names.clone(),
            link: self.externals.files.iter().map(absolute).collect::<Result<_, _>>()?,
            code,
        })
    }

    /// Reads an executable from a file, which is mapped as long as it lives. See also
    /// [`Session::load`](crate::session::Session::load).
    ///
    /// # Errors
    /// When others can write the file or a folder above it, when it is no executable, one of another version, or is not what was
    /// written.
    pub fn load_from(path: &Path) -> Result<Executable, CompileError> {
        let saved = Saved::open(path)?;
        if let Some(why) = writers_of_path(path) {
            return Err(SavedError::Untrusted { path: path.to_owned(), why }.into());
        }
        let Description { info, given, prefix, externals, link, code, tenon: _ } =
            saved.description()?;
        let externals = Externals { names: externals, files: link, given: Vec::new() };
        let info = saved.info(&info)?;
        let count = info.functions.len();
        let mut codes = Vec::with_capacity(code.len());
        for code in code {
            if code.names.len() != count {
                return Err(saved.damaged("it has other functions than it says").into());
            }
            codes.push(saved.code(code)?);
        }
        if codes.is_empty() || count == 0 || given.len() != count {
            return Err(saved.damaged("it has no functions").into());
        }
        Ok(Executable { info, given, code: codes, linker: None, externals, prefix })
    }

    /// What a file says of the executable in it. Nothing of it is run, so it may be anybody's.
    ///
    /// # Errors
    /// When it is no executable, one of another version, or is not what was written.
    pub fn describe_saved(path: &Path) -> Result<SavedDescription, CompileError> {
        let saved = Saved::open(path)?;
        let Description { info, prefix, externals, .. } = saved.description()?;
        let info = saved.info(&info)?;
        match info.functions.is_empty() {
            true => Err(saved.damaged("it has no functions").into()),
            false => {
                let bytes = saved.file.len() as u64;
                Ok(SavedDescription { info, prefix, externals, bytes })
            }
        }
    }
}

/// The path of a file that is linked, wherever the executable is loaded.
fn absolute(path: &PathBuf) -> Result<PathBuf, FileError> {
    std::path::absolute(path).map_err(|cause| FileError::Read { path: path.clone(), cause })
}

/// What lies behind a description; what was put there before is there once.
#[derive(Default)]
struct Parts<'a> {
    all: Vec<(usize, &'a [u8])>,
    known: HashMap<&'a [u8], usize>,
    end: usize,
}

impl<'a> Parts<'a> {
    fn part(&mut self, name: &str, bytes: &'a [u8]) -> Part {
        let at = *self.known.entry(bytes).or_insert_with(|| {
            let at = self.end.next_multiple_of(ALIGN);
            self.all.push((at, bytes));
            self.end = at + bytes.len();
            at
        });
        Part { name: name.to_owned(), at, bytes: bytes.len() }
    }

    /// Writes everything but the head.
    fn write(&self, description: &[u8], file: &mut impl Write) -> std::io::Result<()> {
        let padding = [0; ALIGN];
        file.write_all(&[0; HEAD])?;
        file.write_all(description)?;
        file.write_all(&padding[..begin(description.len()) - HEAD - description.len()])?;
        let mut end = 0;
        for (at, bytes) in &self.all {
            file.write_all(&padding[..at - end])?;
            file.write_all(bytes)?;
            end = at + bytes.len();
        }
        Ok(())
    }
}

/// Where the parts begin behind a description of so many bytes.
fn begin(description: usize) -> usize {
    (HEAD + description).next_multiple_of(ALIGN)
}

/// Writes the head of a file that is complete without.
fn finish(path: &Path, description: usize) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;

    let file = Mapping::open(path).map_err(std::io::Error::other)?;
    let mut head = Vec::with_capacity(HEAD);
    head.extend(MAGIC);
    for number in [VERSION, description as u64, file.len() as u64] {
        head.extend(number.to_le_bytes());
    }
    head.extend(digest(&file[HEAD..]));
    File::options().write(true).open(path)?.write_all_at(&head, 0)
}

/// The digest of what lies behind a head.
fn digest(bytes: &[u8]) -> [u8; 32] {
    let pieces: Vec<String> = bytes.par_chunks(PIECE).map(sha256).collect();
    let digits = sha256(pieces.concat().as_bytes());
    let mut digest = [0; 32];
    for (byte, at) in digest.iter_mut().zip((0..digits.len()).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).expect("these are digits");
    }
    digest
}

/// A file that is what was written.
struct Saved {
    file: Mapping,
    /// Bytes of the description.
    description: usize,
}

impl Saved {
    fn open(path: &Path) -> Result<Saved, CompileError> {
        let foreign = || SavedError::Foreign { path: path.to_owned() };
        let file = match Mapping::open(path) {
            Err(FileError::Empty { .. }) => return Err(foreign().into()),
            file => file?,
        };
        let head = file.first_chunk::<HEAD>().filter(|head| head.starts_with(MAGIC));
        let Some(head) = head else { return Err(foreign().into()) };
        let number = |at: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|byte| head[at + byte]);
            u64::from_le_bytes(bytes)
        };
        let found = number(8);
        if found != VERSION {
            return Err(SavedError::Version { path: path.to_owned(), found }.into());
        }
        let saved = Saved { description: number(16) as usize, file: file.clone() };
        if number(24) != file.len() as u64 {
            let (found, expected) = (file.len(), number(24));
            return Err(saved.damaged(&format!("it has {found} bytes of {expected}")).into());
        }
        if head[32..] != digest(&file[HEAD..]) {
            return Err(saved.damaged("it is not what was written").into());
        }
        Ok(saved)
    }

    fn damaged(&self, what: &str) -> SavedError {
        SavedError::Damaged { path: self.file.path().to_owned(), what: what.to_owned() }
    }

    fn description(&self) -> Result<Description, CompileError> {
        let text = self.file[HEAD..].get(..self.description);
        let text = text.ok_or_else(|| self.damaged("its description is cut off"))?;
        let read = serde_json::from_slice(text);
        Ok(read.map_err(|error| self.damaged(&format!("its description: {error}")))?)
    }

    fn info(&self, text: &str) -> Result<LibraryInfo, CompileError> {
        let info = LibraryInfo::from_json(text.as_bytes());
        Ok(info.map_err(|error| self.damaged(&format!("its functions: {error}")))?)
    }

    fn code(&self, code: Code) -> Result<MachineCode, CompileError> {
        let mut objects = Vec::with_capacity(code.objects.len());
        for part in code.objects {
            let bytes = self.bytes(&part)?.to_vec();
            objects.push(Unit { name: part.name, bytes });
        }
        let mut constants = Vec::with_capacity(code.constants.len());
        for part in code.constants {
            let bytes = self.bytes(&part)?;
            constants.push((part.name, bytes));
        }
        let names = code.names.into_iter().map(|[run, sizes]| FrontCode { run, sizes }).collect();
        let target = Target::parse(&code.target)?;
        Ok(MachineCode { target, names, table: code.table, objects, constants, runs: Vec::new() })
    }

    fn bytes(&self, part: &Part) -> Result<Bytes, SavedError> {
        let begin = begin(self.description).checked_add(part.at);
        let range = begin.and_then(|begin| Some(begin..begin.checked_add(part.bytes)?));
        let slice = range.and_then(|range| self.file.slice(range));
        let cut_off = || self.damaged(&format!("`{}` is cut off", part.name));
        slice.map(Bytes::from).ok_or_else(cut_off)
    }
}
