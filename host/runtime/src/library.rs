//! Opens an exported library.

use std::{
    collections::BTreeMap,
    ffi::{CString, c_void},
    fs::{File, Metadata},
    mem::ManuallyDrop,
    os::fd::AsRawFd,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    ptr::NonNull,
    sync::{Mutex, PoisonError},
};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Why a library or a function in it cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("cannot open {}: {source}", .path.display())]
    Open { path: PathBuf, source: std::io::Error },
    #[error("cannot load {}: {message}", .path.display())]
    Load { path: PathBuf, message: String },
    #[error("{} has no function `{name}`", .path.display())]
    NoSuchFunction { path: PathBuf, name: String },
}

/// Device and number of a file, which no other one has while it is open.
type FileId = (u64, u64);

/// The files that are open as libraries, by the name under which the loader knows them, as often as they are.
static OPEN: Mutex<BTreeMap<PathBuf, Vec<FileId>>> = Mutex::new(BTreeMap::new());

/// A library in this process, closed when dropped.
#[derive(Debug)]
pub struct ExportedLibrary {
    path: PathBuf,
    library: ManuallyDrop<Library>,
    known: Known,
}

/// Under what name the loader knows a library.
#[derive(Debug)]
enum Known {
    /// Its path.
    ByPath(FileId),
    /// The descriptor of its file, which is open as long: another file that was at its path is loaded.
    ByDescriptor(#[expect(dead_code, reason = "no other file gets its number")] File),
}

impl ExportedLibrary {
    /// Opens the library at `path`: that file, never one that a search path finds, nor one that was there before and is still
    /// loaded. Its symbols are resolved at once and are not lent to other libraries.
    ///
    /// # Safety
    /// Opening runs whatever the file wants run. It must be one that the caller trusts.
    pub unsafe fn open(path: &Path) -> Result<ExportedLibrary, LibraryError> {
        let failed = |source| LibraryError::Open { path: path.to_owned(), source };
        // An absolute path, because the loader searches for a name without a slash.
        let path = path.canonicalize().map_err(failed)?;
        let file = File::open(&path).map_err(failed)?;
        let id = id_of(&file.metadata().map_err(failed)?);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let of_path = open.entry(path.clone()).or_default();
        // The loader takes one name for one library, whatever the file is that has the name now.
        let (name, known) = match of_path.iter().all(|&other| other == id) {
            true => (path.clone(), Known::ByPath(id)),
            false => {
                let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
                (descriptor.into(), Known::ByDescriptor(file))
            }
        };
        // SAFETY: what the file runs when it is opened is the caller's to vouch for.
        let library = unsafe { Library::open(Some(&name), RTLD_NOW | RTLD_LOCAL) };
        match library {
            Ok(library) => {
                if let Known::ByPath(id) = known {
                    of_path.push(id);
                }
                Ok(ExportedLibrary { path, library: ManuallyDrop::new(library), known })
            }
            Err(error) => Err(LibraryError::Load { path, message: error.to_string() }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of the function or the data `name`, valid while the library is open.
    pub fn symbol(&self, name: &str) -> Result<NonNull<c_void>, LibraryError> {
        let missing =
            || LibraryError::NoSuchFunction { path: self.path.clone(), name: name.to_owned() };
        let text = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the symbol is read as an address and nothing is done with it.
        let symbol = unsafe { self.library.get::<*mut c_void>(text.as_bytes_with_nul()) };
        let symbol = symbol.map_err(|_| missing())?;
        NonNull::new(symbol.into_raw()).ok_or_else(missing)
    }

    /// The function `name` as a function pointer of type `F`.
    ///
    /// # Safety
    /// `F` must be an `extern "C"` function pointer type, the type of that function. What is
    /// returned must not be called after the library is closed.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, LibraryError> {
        const { assert!(size_of::<F>() == size_of::<*const c_void>(), "F is a function pointer") };
        let address = self.symbol(name)?;
        // SAFETY: same size, and by contract `F` is the function pointer type of this address.
        Ok(unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&address) })
    }
}

impl Drop for ExportedLibrary {
    fn drop(&mut self) {
        // Closed while nobody opens one, who would be given it by its name.
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: dropped here alone.
        unsafe { ManuallyDrop::drop(&mut self.library) };
        if let Known::ByPath(id) = self.known
            && let Some(of_path) = open.get_mut(&self.path)
            && let Some(at) = of_path.iter().position(|&other| other == id)
        {
            of_path.swap_remove(at);
        }
        open.retain(|_, of_path| !of_path.is_empty());
    }
}

fn id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.so");
        // SAFETY: nothing is there to be run.
        let error = unsafe { ExportedLibrary::open(&path) }.unwrap_err();
        assert!(matches!(error, LibraryError::Open { .. }));
        std::fs::write(&path, "text").unwrap();
        // SAFETY: text runs nothing.
        let error = unsafe { ExportedLibrary::open(&path) }.unwrap_err();
        assert!(error.to_string().contains("k.so"), "{error}");
    }
}
