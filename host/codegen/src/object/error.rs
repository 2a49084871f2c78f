//! What can go wrong between objects and a library.

use std::path::PathBuf;

use crate::target::Architecture;
use tenon_runtime::io::FileError;

/// An error about objects and libraries as files.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ObjectError {
    /// The parts call what no runtime provides: our mistake, found before the user's loader does.
    #[error("`{file}` needs {}, which nothing provides; allowed are {}", names_text(.symbols), names_text(.allowed))]
    UndefinedSymbols { file: String, symbols: Vec<String>, allowed: Vec<String> },

    /// A file that is to be linked cannot be read.
    #[error("cannot link: {error}")]
    NoFile { error: FileError },

    /// A file that is to be linked is none that can be.
    #[error("`{}` cannot be linked: it is no object, archive or shared library", .path.display())]
    NothingToLink { path: PathBuf },

    /// A symbol that is to be exported is not there.
    #[error("no function `{name}` in the compiled code")]
    NoExport { name: String },

    /// What was linked cannot be read.
    #[error("`{file}` cannot be read back: {message}")]
    Unreadable { file: String, message: String },

    /// There is no linker on this machine.
    #[error("no linker found; looked for {}. Install one, for example: apt-get install lld-22", names_text(.searched))]
    NoLinker { searched: Vec<String> },

    /// A format that cannot be made into what was asked for.
    #[error(
        "{architecture} has no shared libraries; --emit obj makes an object, for a linker to use"
    )]
    NoLibraries { architecture: Architecture },

    /// The only linker is one for this machine.
    #[error("{} does not link for {target}. Install LLVM's, for example: apt-get install lld-22", .linker.display())]
    ForeignLinker { linker: PathBuf, target: String },

    /// The linker ran and failed.
    #[error("{} failed with {status}:\n{output}", .linker.display())]
    Link { linker: PathBuf, status: String, output: String },

    /// A name or a size that does not fit the object format.
    #[error("constants object: {0}")]
    Constants(String),

    /// The operating system said no.
    #[error("{action} {}: {source}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// Names as they stand in a message.
pub fn names_text(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
