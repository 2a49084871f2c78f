//! Read-only file mappings that are shared, and slices that keep them alive.
//!
//! A [`Mapping`] is cheap to clone and lives as long as its last clone or slice, so a tensor can
//! point into the model file that it came from. Bytes of a file have no alignment: whoever wants
//! `f32`s out of a slice copies them out.

use std::{
    fmt,
    ops::{Deref, Range},
    path::{Path, PathBuf},
    sync::Arc,
};

use memmap2::{Mmap, UncheckedAdvice};
use tenon_plugin_api::ir::Bytes;

use crate::io::{FileError, regular::open_regular};

/// Slices of fewer bytes keep their pages: giving them back takes longer than they are worth.
const LARGE: usize = 1 << 20;

/// A whole file, readable as bytes.
#[derive(Clone)]
pub struct Mapping(Arc<Inner>);

struct Inner {
    path: PathBuf,
    bytes: Backing,
}

enum Backing {
    Mapped(Mmap),
    Memory(Vec<u8>),
}

impl Mapping {
    /// Maps a regular file. Empty files, directories, pipes and devices are refused.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let (file, length) = open_regular(path)?;
        if length == 0 {
            return Err(FileError::Empty { path: path.to_owned() });
        }
        // That nobody truncates or rewrites the file in place is what every user of a mapped input is asked for; no lock that the
        // system offers could enforce it.
        // SAFETY: its bytes are only handed out as `&[u8]`, and stay unchanged as long as nobody does that. The host itself
        // never does: it replaces files by renaming, which leaves the mapped one intact.
        let map = unsafe { Mmap::map(&file) };
        let map = map.map_err(|cause| FileError::Read { path: path.to_owned(), cause })?;
        Ok(Self::new(path, Backing::Mapped(map)))
    }

    /// Holds bytes that are in memory already, under the path that messages shall name.
    pub fn in_memory(path: &Path, bytes: Vec<u8>) -> Self {
        Self::new(path, Backing::Memory(bytes))
    }

    fn new(path: &Path, bytes: Backing) -> Self {
        Self(Arc::new(Inner { path: path.to_owned(), bytes }))
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// A part of the file, or `None` when the range does not lie inside.
    pub fn slice(&self, range: Range<usize>) -> Option<MappedSlice> {
        self.get(range.clone())?;
        Some(MappedSlice { mapping: self.clone(), range })
    }

    /// The slice that `part`, borrowed from this mapping, stands for; `None` when it is borrowed
    /// from elsewhere. This is how a borrowing parser hands out data that outlives the borrow.
    pub fn slice_of(&self, part: &[u8]) -> Option<MappedSlice> {
        let start = part.as_ptr().addr().checked_sub(self.as_ptr().addr())?;
        self.slice(start..start.checked_add(part.len())?)
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0.bytes {
            Backing::Mapped(map) => map,
            Backing::Memory(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({}, {} bytes)", self.path().display(), self.len())
    }
}

/// A part of a mapped file. Keeps the mapping alive; cloning copies no bytes.
#[derive(Clone)]
pub struct MappedSlice {
    mapping: Mapping,
    /// Inside the mapping: checked where the slice is made.
    range: Range<usize>,
}

impl MappedSlice {
    /// The file that it lies in.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Where in the file it lies.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Lets the system have the pages of a large slice, which would be kept in memory as long as the mapping is. Whoever
    /// reads them again has them read from the file again.
    pub fn unread(&self) {
        if let Backing::Mapped(map) = &self.mapping.0.bytes
            && self.range.len() >= LARGE
        {
            let (start, len) = (self.range.start, self.range.len());
            // SAFETY: the mapping is of a file and never written, so a page that is dropped comes back as it was.
            let advised =
                unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, len) };
            // Advice that is not taken costs memory, and nothing else.
            drop(advised);
        }
    }
}

impl From<MappedSlice> for Bytes {
    fn from(slice: MappedSlice) -> Self {
        Self::with_unread(slice, MappedSlice::unread)
    }
}

impl Deref for MappedSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.mapping[self.range.clone()]
    }
}

impl AsRef<[u8]> for MappedSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for MappedSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedSlice({}, {:?})", self.mapping.path().display(), self.range)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{Bytes, LARGE, Mapping};

    #[test]
    fn what_was_given_back_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large");
        let bytes: Vec<u8> = (0..3 * LARGE).map(|at| (at % 251) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        let mapping = Mapping::open(&path).unwrap();
        // Not at the borders of pages: what lies beside it goes and comes back as well.
        let (slice, all) = (1234..2 * LARGE + 77, mapping.slice(0..bytes.len()).unwrap());
        let part = Bytes::from(mapping.slice(slice.clone()).unwrap());
        assert_eq!(part[..], bytes[slice.clone()]);
        part.unread();
        assert_eq!(part[..], bytes[slice]);
        assert_eq!(all[..], bytes[..]);
    }

    #[test]
    fn a_slice_outlives_its_mapping_and_the_file_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::write(&path, b"0123456789").unwrap();
        let mapping = Mapping::open(&path).unwrap();
        let slice = mapping.slice(2..5).unwrap();
        let same = mapping.slice_of(&mapping[2..5]).unwrap();
        assert!(mapping.slice(8..11).is_none());
        drop(mapping);
        fs::remove_file(&path).unwrap();
        assert_eq!(&slice[..], b"234");
        assert_eq!(same.range(), 2..5);
    }

    #[test]
    fn bytes_from_elsewhere_are_not_a_slice() {
        let mapping = Mapping::in_memory(Path::new("a"), vec![1, 2, 3]);
        let other = [0u8; 4096];
        assert!(mapping.slice_of(&other).is_none());
    }

    #[test]
    fn refuses_what_is_not_a_file_with_content() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        fs::write(&empty, b"").unwrap();
        let message = |path: &Path| Mapping::open(path).unwrap_err().to_string();
        assert!(message(&empty).ends_with("empty` is empty"));
        assert!(message(folder.path()).ends_with("is a directory, expected a regular file"));
        assert!(message(&folder.path().join("absent")).starts_with("cannot open `"));
    }

    #[cfg(unix)]
    #[test]
    fn refuses_devices_and_pipes_without_waiting() {
        let message = Mapping::open(Path::new("/dev/null")).unwrap_err().to_string();
        assert_eq!(message, "`/dev/null` is a device, expected a regular file");
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        if !std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|s| s.success()) {
            eprintln!("skipped: no mkfifo here");
            return;
        }
        assert!(Mapping::open(&pipe).unwrap_err().to_string().contains("is a pipe"));
    }
}
