//! What the files of an entry follow from, as a digest.

use std::path::Path;

use rayon::prelude::*;

use super::Cache;
use crate::io::{FileError, Mapping, sha256};

/// Bytes that one thread digests at a time.
pub(super) const PIECE: usize = 4 << 20;

/// The digest of all that an entry follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    pub(super) fn name(&self) -> &str {
        &self.0
    }
}

/// Gathers what an entry follows from.
#[derive(Debug, Default)]
pub struct KeyBuilder(Vec<u8>);

impl KeyBuilder {
    /// A value by its name.
    pub fn text(&mut self, name: &str, value: &str) {
        for part in [name, value] {
            self.0.extend((part.len() as u64).to_le_bytes());
            self.0.extend(part.as_bytes());
        }
    }

    /// What files hold, by their names, as a cache knows or finds out.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn files(&mut self, cache: &Cache, files: &[(&str, &Path)]) -> Result<(), FileError> {
        let paths: Vec<&Path> = files.iter().map(|(_, path)| *path).collect();
        for ((name, _), digest) in files.iter().zip(cache.digests_of(&paths)?) {
            self.text(name, &digest);
        }
        Ok(())
    }

    /// The key.
    pub fn finish(self) -> Key {
        Key(sha256(&self.0))
    }
}

/// The digest of a file: that of the digests of its pieces, which several threads take at once.
///
/// # Errors
/// When it cannot be read.
pub fn digest_of(path: &Path) -> Result<String, FileError> {
    let file = match Mapping::open(path) {
        Err(FileError::Empty { .. }) => return Ok(String::new()),
        file => file?,
    };
    let pieces: Vec<String> = file.par_chunks(PIECE).map(sha256).collect();
    Ok(sha256(pieces.concat().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{KeyBuilder, PIECE, digest_of};

    #[test]
    fn names_values_and_files_count_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        let key = |parts: &[(&str, &str)]| {
            let mut key = KeyBuilder::default();
            parts.iter().for_each(|(name, value)| key.text(name, value));
            key.finish()
        };
        assert_eq!(key(&[("a", "b")]), key(&[("a", "b")]));
        assert_ne!(key(&[("a", "bc")]), key(&[("ab", "c")]));
        assert_ne!(key(&[("a", "b")]), key(&[("a", "b"), ("", "")]));
        let mut bytes = vec![0u8; 2 * PIECE + 1];
        let mut seen = std::collections::HashSet::new();
        // The last byte of each piece, the first of the next one, and how many there are.
        for at in [0, PIECE - 1, PIECE, 2 * PIECE - 1, 2 * PIECE] {
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert!(seen.insert(digest_of(&path).unwrap()), "{at}");
        }
        std::fs::write(&path, &bytes[..PIECE]).unwrap();
        assert!(seen.insert(digest_of(&path).unwrap()));
        std::fs::write(&path, "").unwrap();
        assert_eq!(digest_of(&path).unwrap(), "");
        assert!(digest_of(&folder.path().join("none")).is_err());
    }
}
