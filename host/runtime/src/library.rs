//! Opens an exported library.

use std::{
    ffi::{CString, c_void},
    path::{Path, PathBuf},
    ptr::NonNull,
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

/// A library in this process, closed when dropped.
#[derive(Debug)]
pub struct ExportedLibrary {
    path: PathBuf,
    library: Library,
}

impl ExportedLibrary {
    /// Opens the library at `path`: that file, never one that a search path finds. Its symbols are
    /// resolved at once and are not lent to other libraries.
    ///
    /// # Safety
    /// Opening runs whatever the file wants run. It must be one that the caller trusts.
    pub unsafe fn open(path: &Path) -> Result<ExportedLibrary, LibraryError> {
        // An absolute path, because the loader searches for a name without a slash.
        let path = path
            .canonicalize()
            .map_err(|source| LibraryError::Open { path: path.to_owned(), source })?;
        // SAFETY: what the file runs when it is opened is the caller's to vouch for.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        match library {
            Ok(library) => Ok(ExportedLibrary { path, library }),
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
