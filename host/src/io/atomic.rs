//! Writes a file so that nobody ever sees half of it.
//!
//! The content goes to a temporary file in the target's own folder, which is then renamed over
//! the target. If anything fails before that, the target is as it was and the temporary is gone.
//! An existing target that is no regular file is refused: renaming over `/dev/null` would
//! replace the device.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    sync::{PoisonError, RwLock, RwLockWriteGuard},
};

use crate::io::{FileError, regular::check_kind};

/// Read while a file is being written.
static WRITES: RwLock<()> = RwLock::new(());

/// Creates or replaces `path` with what `write` writes.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let _writing = WRITES.read().unwrap_or_else(PoisonError::into_inner);
    if let Ok(metadata) = fs::metadata(path) {
        check_kind(path, metadata.file_type())?;
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let failed = |cause| FileError::Write { path: path.to_owned(), cause };

    let mut builder = tempfile::Builder::new();
    builder.prefix(".tenon-").suffix(".partial");
    with_usual_permissions(&mut builder);
    let mut temporary = builder.tempfile_in(folder).map_err(failed)?;
    let mut writer = BufWriter::with_capacity(1 << 16, temporary.as_file_mut());
    write(&mut writer)?;
    writer.flush().map_err(failed)?;
    drop(writer);
    temporary.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Waits until no file is being written, and keeps new ones from being begun while the result lives: whoever ends
/// the program then leaves no part of a file behind.
pub fn wait_for_writes() -> RwLockWriteGuard<'static, ()> {
    WRITES.write().unwrap_or_else(PoisonError::into_inner)
}

/// The permissions of any new file (`rw` for all, less the umask) instead of a temporary's.
#[cfg(unix)]
fn with_usual_permissions(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn with_usual_permissions(_builder: &mut tempfile::Builder<'_, '_>) {}

#[cfg(test)]
mod tests {
    use std::{fs, io, io::Write, path::Path};

    use super::write_atomically;
    use crate::io::FileError;

    #[test]
    fn replaces_the_file_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, b"old").unwrap();
        write_atomically(&path, |file| {
            file.write_all(b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old");
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, b"old").unwrap();
        let failure = FileError::Write { path: path.clone(), cause: io::Error::other("full") };
        write_atomically(&path, |_| Err(failure)).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn is_readable_as_any_new_file_and_spares_devices() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [ours, usual] = ["ours", "usual"].map(|name| folder.path().join(name));
        write_atomically(&ours, |_| Ok(())).unwrap();
        fs::write(&usual, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&usual));
        let message = write_atomically(Path::new("/dev/null"), |_| Ok(())).unwrap_err();
        assert_eq!(message.to_string(), "`/dev/null` is a device, expected a regular file");
    }
}
