//! Functions that compiled code calls and others define: objects, archives and libraries that are linked, or the process.
//!
//! ```text
//! tenon compile model.ir --link vendor.o --link libvendor.so
//! ```
//!
//! An object and what is needed of an archive become part of what is made. A shared library is named as needed, and found
//! beside the library that needs it, or where the loader looks. What neither defines is left to the process that opens it.

use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;
use object::{Object, ObjectKind};
use tenon_runtime::io::Mapping;

use super::ObjectError;

/// Functions that compiled code calls and others define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Externals {
    /// Their symbols, each once.
    pub names: Vec<String>,
    /// The objects, archives and shared libraries that are linked.
    pub files: Vec<PathBuf>,
    /// Functions of this process, by their symbols: code that runs in it calls these first.
    pub given: Vec<GivenFunction>,
}

/// Code that calls nothing of others.
pub static NONE: Externals = Externals { names: Vec::new(), files: Vec::new(), given: Vec::new() };

/// A function of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenFunction {
    /// The symbol by which code calls it.
    pub name: String,
    /// Where it is; its provenance is exposed.
    pub address: usize,
}

/// What a file is to a linker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A relocatable object.
    Object,
    /// A collection of objects.
    Archive,
    /// A shared library.
    Shared,
}

impl Externals {
    /// Whether code calls nothing that others define.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What each file is.
    ///
    /// # Errors
    /// When one cannot be read, or is nothing that can be linked.
    pub fn kinds(&self) -> Result<Vec<FileKind>, ObjectError> {
        self.files.iter().map(|path| kind_of(path)).collect()
    }
}

/// What a file is to a linker.
fn kind_of(path: &Path) -> Result<FileKind, ObjectError> {
    let refused = || ObjectError::NothingToLink { path: path.to_owned() };
    let bytes = Mapping::open(path).map_err(|error| ObjectError::NoFile { error })?;
    if bytes.starts_with(b"!<arch>\n") {
        return ArchiveFile::parse(&bytes[..]).map(|_| FileKind::Archive).map_err(|_| refused());
    }
    match object::File::parse(&bytes[..]).map(|file| file.kind()) {
        Ok(ObjectKind::Relocatable) => Ok(FileKind::Object),
        Ok(ObjectKind::Dynamic) => Ok(FileKind::Shared),
        _ => Err(refused()),
    }
}
