//! Constants in a file beside a library, which maps it.
//!
//! ```text
//! 0       `TENONWTS`, version, bytes of the file: 8 bytes each; SHA-256 of all behind the page, 32 bytes; 8 zeros
//! 4096    the constants, each on a boundary of 64
//! ```
//!
//! Numbers are little-endian. A library has the first 64 bytes of its file, its [`Head`], and takes no file that begins with others or
//! is of another size. So one of another model is refused, and one that is cut off, without reading gigabytes.
//!
//! A library in a process has its weights once, whoever opens it and how often: what was opened first maps the file, which stays
//! mapped until the library is gone from the process.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::io::{FileError, Hashing, Mapping, Outputs, aside_of};
use crate::library::ExportedLibrary;
use crate::model::ModelError;

/// Where the constants begin: on a page of their own.
pub const FIRST: u64 = 4096;
/// Each begins on such a boundary.
pub const ALIGN: u64 = 64;

const MAGIC: &[u8; 8] = b"TENONWTS";
const VERSION: u64 = 1;
/// Where the digest stands in a head.
const DIGEST: std::ops::Range<usize> = 24..56;

/// `PREFIX_set_weights`: takes weights, or with null and 0 takes them away.
pub type RawSetWeights = unsafe extern "C" fn(data: *const c_void, bytes: u64) -> i32;

/// `PREFIX_weights`: those that were taken; null where there are none.
pub type RawWeights = unsafe extern "C" fn() -> *const c_void;

/// What a library says of its weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightsInfo {
    /// The name of the file, which lies beside the library.
    pub file: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// SHA-256 of the constants in it.
    pub digest: String,
}

/// The beginning of a file of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub [u8; 64]);

impl Head {
    /// Of a file of so many bytes, and the digest of its constants.
    fn new(bytes: u64, digest: &str) -> Head {
        let mut head = [0; 64];
        head[..8].copy_from_slice(MAGIC);
        head[8..16].copy_from_slice(&VERSION.to_le_bytes());
        head[16..24].copy_from_slice(&bytes.to_le_bytes());
        for (byte, at) in head[DIGEST].iter_mut().zip((0..digest.len()).step_by(2)) {
            let digits = digest.get(at..at + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or(0);
        }
        Head(head)
    }
}

impl WeightsInfo {
    /// How the file begins.
    pub fn head(&self) -> Head {
        Head::new(self.bytes, &self.digest)
    }

    /// Why a file is not the one that is meant.
    fn problem(&self, file: &Mapping) -> Option<String> {
        let path = file.path().display();
        let (found, expected) = (file.len() as u64, self.bytes);
        match file.get(..self.head().0.len()) {
            Some(head) if !head.starts_with(MAGIC) => {
                Some(format!("`{path}` is no file of weights"))
            }
            Some(head) if head != self.head().0 => {
                Some(format!("`{path}` has the weights of another library"))
            }
            _ if found != expected => Some(format!(
                "`{path}` has {found} bytes of {expected}: it was not written or copied to its end"
            )),
            _ => None,
        }
    }
}

/// The digest by which a library names a file; none where that is no file of weights.
pub fn digest_of(path: &Path) -> Option<String> {
    let mut head = [0; 64];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).ok()?;
    let digits = head[DIGEST].iter().map(|byte| format!("{byte:02x}"));
    head.starts_with(MAGIC).then(|| digits.collect())
}

/// Where arrays of so many bytes lie in a file, and how many bytes it has.
pub fn places_of(lengths: impl IntoIterator<Item = usize>) -> (Vec<u64>, u64) {
    let mut end = FIRST;
    let place = |length| {
        let place = end.next_multiple_of(ALIGN);
        end = place + length as u64;
        place
    };
    let places = lengths.into_iter().map(place).collect();
    (places, end)
}

/// Writes arrays as one of several outputs, and tells what a library has to know of the file.
///
/// # Errors
/// When it cannot be written.
pub fn write(
    outputs: &mut Outputs,
    path: &Path,
    arrays: &[&[u8]],
) -> Result<WeightsInfo, FileError> {
    let failed = |cause| FileError::Write { path: path.to_owned(), cause };
    // The library looks for it by its name.
    let Some(file) = path.file_name().unwrap_or_default().to_str() else {
        let cause = "the name of a file of weights is UTF-8, since it stands in the library";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidFilename, cause)));
    };
    let (places, bytes) = places_of(arrays.iter().map(|array| array.len()));
    let mut digest = String::new();
    outputs.write(path, |file| {
        file.write_all(&[0; FIRST as usize]).map_err(failed)?;
        let mut hashing = Hashing::new(&mut *file);
        let mut at = FIRST;
        for (array, place) in arrays.iter().zip(places) {
            hashing.write_all(&[0; ALIGN as usize][..(place - at) as usize]).map_err(failed)?;
            hashing.write_all(array).map_err(failed)?;
            at = place + array.len() as u64;
        }
        digest = hashing.finish();
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        file.write_all(&Head::new(bytes, &digest).0).map_err(failed)
    })?;
    outputs.named_by_digest(&digest);
    Ok(WeightsInfo { file: file.to_owned(), bytes, digest })
}

/// Takes weights, and says which were taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taking {
    pub(crate) set: RawSetWeights,
    pub(crate) get: RawWeights,
}

/// The libraries of this process that have weights of ours, by the address of what takes them.
static TAKEN: Mutex<BTreeMap<usize, Taken>> = Mutex::new(BTreeMap::new());

struct Taken {
    users: usize,
    /// It stays mapped.
    file: Mapping,
}

/// A library that is open, with its weights. Nothing of it may run any more when the last one of us goes.
#[derive(Debug)]
pub(crate) struct Attached {
    taking: Taking,
    /// Whether they are ours to unmap.
    is_own: bool,
    library: Option<ExportedLibrary>,
    /// Where they were found; none where somebody else brought them.
    pub(crate) path: Option<PathBuf>,
}

impl Attached {
    /// Gives a library its weights, from the file that is named, or else from that beside it; unless it has them.
    ///
    /// # Safety
    /// `taking` are the functions of a library that is open and stays so while the result lives, which may close it when it goes.
    pub(crate) unsafe fn new(
        taking: Taking,
        info: &WeightsInfo,
        library: &Path,
        named: Option<&Path>,
    ) -> Result<Attached, ModelError> {
        let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let attached = |is_own, path| Attached { taking, is_own, path, library: None };
        // SAFETY: it takes nothing, and reads a pointer.
        let is_there = !unsafe { (taking.get)() }.is_null();
        if let Some(taken) = all.get_mut(&taking.key()) {
            taken.users += 1;
            if !is_there {
                // Somebody has taken it away, by its functions in C.
                // SAFETY: as below; it was taken before.
                unsafe { (taking.set)(taken.file.as_ptr().cast(), taken.file.len() as u64) };
            }
            return Ok(attached(true, Some(taken.file.path().to_owned())));
        }
        if is_there {
            // Somebody else has given it what it needs.
            return Ok(attached(false, None));
        }
        let failed = |problem| ModelError::Weights { library: library.to_owned(), problem };
        let file = find(info, library, named).map_err(failed)?;
        // SAFETY: as many bytes as are said, which are mapped as long as the library has them.
        let status = unsafe { (taking.set)(file.as_ptr().cast(), file.len() as u64) };
        // SAFETY: as above.
        let taken = unsafe { (taking.get)() };
        if status != 0 {
            return Err(failed(format!(
                "`{}` is refused (status {status})",
                file.path().display()
            )));
        }
        let is_own = taken == file.as_ptr().cast();
        let path = is_own.then(|| file.path().to_owned());
        if is_own {
            all.insert(taking.key(), Taken { users: 1, file });
        }
        Ok(attached(is_own, path))
    }

    /// Closes the library, when it goes.
    pub(crate) fn closing(mut self, library: ExportedLibrary) -> Attached {
        self.library = Some(library);
        self
    }
}

impl Taking {
    fn key(self) -> usize {
        (self.set as *const c_void).addr()
    }

    /// Whether there is still a library where these functions were.
    fn is_loaded(self) -> bool {
        let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: it looks an address up, whatever that is, and writes what it finds to a place of ours.
        unsafe { libc::dladdr(self.set as *const c_void, found.as_mut_ptr()) != 0 }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if !self.is_own {
            return;
        }
        let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(taken) = all.get_mut(&self.taking.key()) else { return };
        taken.users -= 1;
        if taken.users > 0 {
            return;
        }
        let taken = all.remove(&self.taking.key());
        // Closed while nobody is given weights: who opens it from here on finds it with these, or finds it anew.
        drop(self.library.take());
        if self.taking.is_loaded() {
            // Somebody else has it open, and may run it at any time.
            std::mem::forget(taken);
        }
    }
}

/// The file of a library's weights, or what is wrong with the one that is there.
fn find(info: &WeightsInfo, library: &Path, named: Option<&Path>) -> Result<Mapping, String> {
    let beside = |path: &Path| path.with_file_name(&info.file);
    let places = match named {
        Some(path) => vec![path.to_owned()],
        // A link to a library may have the file beside it, or beside what it leads to.
        None => {
            let mut places = vec![beside(library)];
            places.extend(library.canonicalize().ok().map(|real| beside(&real)));
            places
        }
    };
    let mut first = None;
    for place in &places {
        match find_at(info, place) {
            Ok(file) => return Ok(file),
            Err(problem) => first = first.or(Some(problem)),
        }
    }
    let problem = first.unwrap_or_default();
    Err(match named {
        Some(_) => problem,
        None => format!("{problem}; it belongs beside the library, or is named: --weights-file"),
    })
}

/// The file at a place, or on its way there: another one names it by its digest before it has its name.
fn find_at(info: &WeightsInfo, place: &Path) -> Result<Mapping, String> {
    let aside: Option<PathBuf> = aside_of(place, &info.digest);
    let mut first = None;
    for path in [Some(place), aside.as_deref(), Some(place)].into_iter().flatten() {
        let problem = match Mapping::open(path) {
            Ok(file) => match info.problem(&file) {
                None => return Ok(file),
                Some(problem) => problem,
            },
            Err(error) => error.to_string(),
        };
        first = first.or(Some(problem));
    }
    Err(first.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path, arrays: &[&[u8]]) -> (PathBuf, WeightsInfo) {
        let path = folder.join("m.weights");
        let mut outputs = Outputs::default();
        let info = write(&mut outputs, &path, arrays).unwrap();
        outputs.publish().unwrap();
        (path, info)
    }

    #[test]
    fn arrays_lie_on_boundaries_behind_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let (path, info) = written(folder.path(), &[&[1; 65], &[], &[2; 3]]);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(places_of([65, 0, 3]), (vec![4096, 4224, 4224], 4227));
        assert_eq!((bytes.len() as u64, info.file.as_str()), (info.bytes, "m.weights"));
        assert_eq!(bytes[..64], info.head().0);
        assert_eq!(info.digest, crate::io::sha256(&bytes[4096..]));
        assert_eq!(digest_of(&path).as_ref(), Some(&info.digest));
        assert_eq!(digest_of(&path.with_extension("none")), None);
        assert_eq!((&bytes[4096..4161], &bytes[4224..]), (&[1; 65][..], &[2; 3][..]));
        assert_eq!(places_of([]), (vec![], FIRST));
        use std::os::unix::ffi::OsStrExt;
        let name = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.weights"));
        let error = write(&mut Outputs::default(), &name, &[]).unwrap_err().to_string();
        assert!(error.contains("the name of a file of weights is UTF-8"), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (_, other) = written(folder.path(), &[&[3; 100]]);
        let (path, info) = written(folder.path(), &[&[1; 100]]);
        let library = folder.path().join("m.so");
        let problem = |info: &WeightsInfo| find(info, &library, None).unwrap_err();
        assert!(find(&info, &library, None).is_ok());
        assert!(problem(&other).contains("the weights of another library"), "{}", problem(&other));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(problem(&info).contains("4195 bytes of 4196"), "{}", problem(&info));
        std::fs::write(&path, "text").unwrap();
        assert!(problem(&info).contains("4 bytes of 4196"), "{}", problem(&info));
        std::fs::write(&path, [0; 4196]).unwrap();
        assert!(problem(&info).contains("is no file of weights"), "{}", problem(&info));
        std::fs::remove_file(&path).unwrap();
        assert!(problem(&info).contains("belongs beside the library"), "{}", problem(&info));
        // One that is not yet in its place.
        std::fs::write(aside_of(&path, &info.digest).unwrap(), &bytes).unwrap();
        assert!(find(&info, &library, None).is_ok());
        let elsewhere = folder.path().join("elsewhere");
        let problem = find(&info, &library, Some(&elsewhere)).unwrap_err();
        assert!(problem.contains("cannot open") && !problem.contains("beside"), "{problem}");
    }
}
