//! A library's file, held open: what is looked at, hashed and read is one file, whatever happens to its name.

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{LoadError, Manifest, ManifestError, digest};
use crate::io::{FileError, open_regular};

/// A library's file. While this lives, no other file gets its inode.
pub struct LibraryFile {
    path: PathBuf,
    file: File,
    identity: Identity,
}

/// What tells a file from every other, and from itself before somebody wrote to it: the time of a change is set
/// by the kernel, and by nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    /// When its bytes were changed, in nanoseconds.
    pub(super) modified: i64,
    /// When its bytes, its name or its owner were changed, in nanoseconds.
    pub(super) changed: i64,
}

impl LibraryFile {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> Result<LibraryFile, FileError> {
        let (file, _) = open_regular(path)?;
        let metadata =
            file.metadata().map_err(|cause| FileError::Open { path: path.to_owned(), cause })?;
        Ok(Self { path: path.to_owned(), file, identity: Identity::of(&metadata) })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its manifest.
    pub fn manifest(&self) -> Result<Manifest, ManifestError> {
        Manifest::read_open(&self.file, &self.path)
    }

    /// Its SHA-256 digest, in lowercase hexadecimal digits.
    pub fn sha256(&self) -> Result<String, FileError> {
        let failed = |cause| FileError::Read { path: self.path.clone(), cause };
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        digest::of(file).map_err(failed)
    }

    /// All of its bytes.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, FileError> {
        let failed = |cause| FileError::Read { path: self.path.clone(), cause };
        let (mut file, mut bytes) = (&self.file, Vec::new());
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Refuses when its path leads to another file by now, or somebody wrote to it.
    pub(super) fn check_unchanged(&self) -> Result<(), LoadError> {
        match fs::metadata(&self.path) {
            Ok(metadata) if Identity::of(&metadata) == self.identity() => Ok(()),
            _ => Err(LoadError::Replaced { path: self.path.clone() }),
        }
    }
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| seconds.wrapping_mul(1_000_000_000) + rest;
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
