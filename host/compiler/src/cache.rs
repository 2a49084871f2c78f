//! What was compiled before, by what it was made of.
//!
//! ```text
//! DIR/9f86d081…/entry.json       which other files were read, with their digests; the files below, with their sums
//! DIR/9f86d081…/binary           a library or an object
//! DIR/9f86d081…/header           its header
//! DIR/seen/2c26b46b…             the digest of a file that was read, as long as it is the same
//! ```
//!
//! An entry's name is the digest of all that its files follow from ([`Key`]). It is made beside its place and renamed, so several
//! processes may use one folder, and an entry that is there is whole; one that was damaged since is found by its sums, and is
//! gone. Native code is what lies there, so the folder is used only if nobody else can write it, as those of plugins are.
//! What was not used for the longest time goes when all of it is larger than the cache may be.

mod key;
mod seen;
mod store;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::io::FileError;
use crate::registry::writers_of_path;

pub use key::{Key, KeyBuilder, digest_of};
pub use store::{Kept, Lookup};

/// Bytes that a cache may hold unless somebody says otherwise.
pub const MOST: u64 = 8 << 30;

/// Why a folder is no cache.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CacheError {
    #[error("the cache `{}` is not used: {why}; what lies there runs, so nobody else may be able to change it", .folder.display())]
    Untrusted { folder: PathBuf, why: String },
    #[error("the cache `{}` cannot be used: {cause}", .folder.display())]
    Folder { folder: PathBuf, cause: std::io::Error },
    #[error(transparent)]
    File(#[from] FileError),
}

/// A folder with what was compiled.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    most: u64,
}

impl Cache {
    /// Opens a folder, which is made if it is not there.
    ///
    /// # Errors
    /// When somebody else can write the folder or one above it.
    pub fn open(folder: &Path) -> Result<Cache, CacheError> {
        let failed = |cause| CacheError::Folder { folder: folder.to_owned(), cause };
        if !folder.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        let folder = fs::canonicalize(folder).map_err(failed)?;
        match writers_of_path(&folder) {
            Some(why) => Err(CacheError::Untrusted { folder, why }),
            None => Ok(Cache { folder, most: MOST }),
        }
    }

    /// The same, that holds no more than so many bytes.
    pub fn with_limit(self, most: u64) -> Cache {
        Cache { most, ..self }
    }
}
