//! Digests of files.

use std::fmt::Write;
use std::io::{self, Read, copy};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::LibraryFile;
use crate::io::FileError;

/// The SHA-256 digest of a file, in lowercase hexadecimal digits.
pub fn sha256(path: &Path) -> Result<String, FileError> {
    LibraryFile::open(path)?.sha256()
}

/// The digest of all that can be read.
pub(super) fn of(mut bytes: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    copy(&mut bytes, &mut digest)?;
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        write!(text, "{byte:02x}").expect("a text takes whatever is written");
    }
    Ok(text)
}
