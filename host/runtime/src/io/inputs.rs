//! The files that a command reads, so that no output takes the place of one.
//!
//! They are told apart by what they are and not by their names: a model may be reached through links.

use std::fs;
use std::path::{Path, PathBuf};

use crate::io::FileError;

/// Files that were read.
#[derive(Clone, Debug, Default)]
pub struct InputFiles(Vec<(Identity, PathBuf)>);

impl InputFiles {
    /// The regular files among `paths`.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let known = |path: PathBuf| Some((Identity::of(&path)?, path));
        Self(paths.into_iter().filter_map(known).collect())
    }

    /// Their paths, as they were read.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(_, path)| path.as_path())
    }

    /// An error if `output` is one of these files.
    pub fn refuse(&self, output: &Path) -> Result<(), FileError> {
        let Some(identity) = Identity::of(output) else { return Ok(()) };
        match self.0.iter().find(|(other, _)| *other == identity) {
            Some((_, input)) => {
                Err(FileError::IsInput { path: output.to_owned(), input: input.clone() })
            }
            None => Ok(()),
        }
    }
}

/// What a regular file is, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl Identity {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self((metadata.dev(), metadata.ino())))
    }

    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        fs::canonicalize(path).ok().map(Self)
    }
}
