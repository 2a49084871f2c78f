//! Digests of files.

use std::fmt::Write;
use std::io::copy;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::io::{FileError, open_regular};

/// The SHA-256 digest of a file, in lowercase hexadecimal digits.
pub fn sha256(path: &Path) -> Result<String, FileError> {
    let (mut file, _) = open_regular(path)?;
    let mut digest = Sha256::new();
    copy(&mut file, &mut digest)
        .map_err(|cause| FileError::Read { path: path.to_owned(), cause })?;
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        write!(text, "{byte:02x}").expect("a text takes whatever is written");
    }
    Ok(text)
}
