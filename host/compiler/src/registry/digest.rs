//! Digests of files.

use std::io::{self, Read, copy, sink};
use std::path::Path;

use super::LibraryFile;
use crate::io::{FileError, Hashing};

/// The SHA-256 digest of a file, in lowercase hexadecimal digits.
pub fn sha256(path: &Path) -> Result<String, FileError> {
    LibraryFile::open(path)?.sha256()
}

/// The digest of all that can be read.
pub(super) fn of(mut bytes: impl Read) -> io::Result<String> {
    let mut digest = Hashing::new(sink());
    copy(&mut bytes, &mut digest)?;
    Ok(digest.finish())
}
