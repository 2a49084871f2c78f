//! Writes files so that nobody ever sees half of one, or some of several that belong together.
//!
//! The content of each goes to a temporary file in its target's own folder. When all are complete they are
//! renamed over their targets, while the folders are locked against others who do the same. If anything fails
//! before that, every target is as it was and no temporary is left.
//!
//! A link is followed: what it leads to is replaced, and the link stays. What is no file (a device, a pipe) is
//! never replaced: it is written to, once all is complete.
//!
//! Two renames are two steps, and a program can be ended between them. So a file that another one names by its
//! digest is first put [`aside`] under that digest, then the other is replaced, and then it takes its own name:
//! a reader that looks in both places finds it whenever it finds the digest.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempPath;

use crate::io::{FileError, InputFiles, regular::check_kind};

/// How many links may lead to each other, as in Linux.
const MOST_LINKS: usize = 40;

/// Digits of a digest that tell files aside apart.
const DIGITS: usize = 16;

/// Files are renamed within microseconds. Whoever locks a folder for longer does something else with it, such as
/// calling this program under a lock of its own.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Read while files are being written.
static WRITES: RwLock<()> = RwLock::new(());

/// Waits until no file is being written, and keeps new ones from being begun while the result lives: whoever ends
/// the program then leaves no part of a file behind.
pub fn wait_for_writes() -> RwLockWriteGuard<'static, ()> {
    WRITES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Creates or replaces `path` with what `write` writes.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let mut outputs = Outputs::default();
    outputs.write(path, write)?;
    outputs.publish()
}

/// Files that appear together, when all of them are complete.
#[derive(Debug)]
pub struct Outputs {
    inputs: InputFiles,
    pending: Vec<Pending>,
    _writing: RwLockReadGuard<'static, ()>,
}

/// A complete file that waits for its place.
#[derive(Debug)]
struct Pending {
    /// As messages name it.
    path: PathBuf,
    temporary: TempPath,
    destination: Destination,
    /// The digest by which another file names it.
    digest: Option<String>,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
enum Destination {
    /// A place for a file, behind all links; there may be none yet.
    File(PathBuf),
    /// A device, a pipe, an open file of a process.
    Stream(PathBuf),
}

/// What may be done with a new file, but for what the user's mask forbids.
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    Data,
    Program,
    /// What becomes code when it is read, which nobody else may write, whatever the mask says.
    Code,
}

impl Default for Outputs {
    fn default() -> Self {
        Self::sparing(InputFiles::default())
    }
}

impl Outputs {
    /// Outputs that replace none of `inputs`.
    pub fn sparing(inputs: InputFiles) -> Self {
        let _writing = WRITES.read().unwrap_or_else(PoisonError::into_inner);
        Self { inputs, pending: Vec::new(), _writing }
    }

    /// Adds a file with what `write` writes.
    pub fn write(
        &mut self,
        path: &Path,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        self.make(path, Mode::Data, |temporary| {
            let failed = |cause| FileError::Write { path: path.to_owned(), cause };
            let mut file =
                OpenOptions::new().read(true).write(true).open(temporary).map_err(failed)?;
            let mut writer = BufWriter::with_capacity(1 << 16, &mut file);
            write(&mut writer)?;
            writer.flush().map_err(failed)
        })
    }

    /// Adds a file that `make` writes to the path that it is given: another program, as a rule.
    pub fn make<E: From<FileError>>(
        &mut self,
        path: &Path,
        mode: Mode,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |cause| FileError::Write { path: path.to_owned(), cause };
        let destination = self.destination(path)?;
        let folder = match &destination {
            Destination::File(file) => folder_of(file).to_owned(),
            Destination::Stream(_) => std::env::temp_dir(),
        };
        let temporary = new_file(&folder, mode).map_err(failed)?;
        let permissions = fs::metadata(&temporary).map_err(failed)?.permissions();
        make(&temporary)?;
        // A program may have put another file into its place.
        fs::set_permissions(&temporary, permissions).map_err(failed)?;
        self.pending.push(Pending { path: path.to_owned(), temporary, destination, digest: None });
        Ok(())
    }

    /// Says that another of these files names the last one by this digest.
    pub fn named_by_digest(&mut self, digest: &str) {
        if let Some(last) = self.pending.last_mut() {
            last.digest = Some(digest.to_owned());
        }
    }

    /// Where the last one lies until it is published.
    pub fn last(&self) -> Option<&Path> {
        self.pending.last().map(|pending| &*pending.temporary)
    }

    fn destination(&self, path: &Path) -> Result<Destination, FileError> {
        self.inputs.refuse(path)?;
        let destination = Destination::of(path)?;
        let same = |pending: &&Pending| {
            matches!(destination, Destination::File(_)) && pending.destination == destination
        };
        match self.pending.iter().find(same) {
            Some(Pending { path: other, .. }) => {
                Err(FileError::SameOutput { path: path.to_owned(), other: other.clone() })
            }
            None => Ok(destination),
        }
    }

    /// Puts all files into their places. What is written to and cannot be replaced comes first, since it may fail.
    pub fn publish(self) -> Result<(), FileError> {
        let mut files = Vec::new();
        for Pending { path, temporary, destination, digest } in self.pending {
            match destination {
                Destination::Stream(stream) => {
                    copy(&temporary, &stream).map_err(|cause| FileError::Write { path, cause })?;
                }
                Destination::File(file) => files.push((path, temporary, file, digest)),
            }
        }
        let locks = lock(files.iter().map(|(_, _, file, _)| folder_of(file)));
        let mut waiting = Vec::new();
        let (named, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|(.., digest)| digest.is_some());
        for (path, temporary, file, digest) in named {
            let aside = aside(&file, digest.as_deref().unwrap_or_default());
            let moved = temporary.persist(&aside).map_err(io::Error::from);
            let moved = moved.and_then(|()| TempPath::try_from_path(aside));
            // Where another file cannot be put into its place, this one is removed again.
            match moved {
                Ok(aside) => waiting.push((path, aside, file)),
                Err(cause) => return Err(FileError::Write { path, cause }),
            }
        }
        replace(others.into_iter().map(|(path, temporary, file, _)| (path, temporary, file)))?;
        for (path, aside, file) in waiting {
            if let Err(error) = aside.persist(&file) {
                // It is named by now, and is found where it is.
                let _ = error.path.keep();
                return Err(FileError::Write { path, cause: error.error });
            }
            sweep(&file);
        }
        drop(locks);
        Ok(())
    }
}

impl Destination {
    fn of(path: &Path) -> Result<Self, FileError> {
        let failed = |cause| FileError::Write { path: path.to_owned(), cause };
        if let Ok(metadata) = fs::metadata(path)
            && !metadata.is_file()
        {
            if metadata.is_dir() {
                check_kind(path, metadata.file_type())?;
            }
            return Ok(Self::Stream(path.to_owned()));
        }
        Self::behind_links(path).map_err(failed)
    }

    fn behind_links(path: &Path) -> io::Result<Self> {
        let mut file = path.to_owned();
        for _ in 0..MOST_LINKS {
            let folder = fs::canonicalize(folder_of(&file))?;
            match fs::read_link(&file) {
                // An open file of a process, whatever it is called.
                Ok(_) if folder.starts_with("/proc") => return Ok(Self::Stream(path.to_owned())),
                Ok(next) => file = folder.join(next),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
                    ) =>
                {
                    let name = file.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
                    return Ok(Self::File(folder.join(name)));
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many links lead to each other"))
    }
}

/// Replaces files one after the other. Where one cannot be replaced, those before it come back.
fn replace(
    files: impl ExactSizeIterator<Item = (PathBuf, TempPath, PathBuf)>,
) -> Result<(), FileError> {
    let is_alone = files.len() == 1;
    let mut done: Vec<(PathBuf, io::Result<TempPath>)> = Vec::new();
    for (path, temporary, file) in files {
        let old = match is_alone {
            true => Err(io::ErrorKind::Unsupported.into()),
            false => second_name(&file),
        };
        if let Err(error) = temporary.persist(&file) {
            for (file, old) in done.into_iter().rev() {
                // What cannot be undone is not worse than what has failed.
                let _ = match old {
                    Ok(old) => old.persist(&file).map_err(io::Error::from),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => fs::remove_file(&file),
                    Err(error) => Err(error),
                };
            }
            return Err(FileError::Write { path, cause: error.error });
        }
        done.push((file, old));
    }
    Ok(())
}

/// Another name for a file, by which it stays when it is replaced.
fn second_name(file: &Path) -> io::Result<TempPath> {
    let named = tempfile::Builder::new()
        .prefix(".tenon-")
        .suffix(".old")
        .make_in(folder_of(file), |name| fs::hard_link(file, name))?;
    Ok(named.into_temp_path())
}

/// Whether a path leads to something that is written to and is no file, so that nothing lies beside it.
pub fn is_stream(path: &Path) -> bool {
    matches!(Destination::of(path), Ok(Destination::Stream(_)))
}

/// Where a file lies between the moment that another one names it by its digest and the moment that it has its
/// own name.
pub(crate) fn aside(file: &Path, digest: &str) -> PathBuf {
    let mut name = aside_prefix(file);
    name.push(digest.get(..DIGITS).unwrap_or(digest));
    file.with_file_name(name)
}

/// As [`aside`], for a path that may be a link.
pub(crate) fn aside_of(path: &Path, digest: &str) -> Option<PathBuf> {
    match Destination::of(path) {
        Ok(Destination::File(file)) => Some(aside(&file, digest)),
        _ => None,
    }
}

fn aside_prefix(file: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(".");
    name
}

/// Removes what others have left aside who were ended. Nobody else is about to rename: the folder is locked.
fn sweep(file: &Path) {
    let prefix = aside_prefix(file);
    let Ok(entries) = fs::read_dir(folder_of(file)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let digits = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        if digits.is_some_and(|it| it.len() == DIGITS && it.iter().all(u8::is_ascii_hexdigit)) {
            // What cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Locks folders, in an order that all agree on. Where a file system has no locks nothing is locked.
fn lock<'a>(folders: impl Iterator<Item = &'a Path>) -> Vec<File> {
    let deadline = Instant::now() + LONGEST_WAIT;
    let folders: BTreeSet<&Path> = folders.collect();
    let locked = |folder| -> Option<File> {
        let folder = File::open(folder).ok()?;
        loop {
            match folder.try_lock() {
                Ok(()) => return Some(folder),
                Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return None,
            }
        }
    };
    folders.into_iter().filter_map(locked).collect()
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = OpenOptions::new().write(true).open(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.flush()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn new_file(folder: &Path, mode: Mode) -> io::Result<TempPath> {
    use std::os::unix::fs::PermissionsExt;
    let bits = match mode {
        Mode::Data => 0o666,
        Mode::Program => 0o777,
        Mode::Code => 0o644,
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tenon-").suffix(".partial").permissions(fs::Permissions::from_mode(bits));
    Ok(builder.tempfile_in(folder)?.into_temp_path())
}

#[cfg(not(unix))]
fn new_file(folder: &Path, _mode: Mode) -> io::Result<TempPath> {
    let mut builder = tempfile::Builder::new();
    Ok(builder.prefix(".tenon-").suffix(".partial").tempfile_in(folder)?.into_temp_path())
}

#[cfg(test)]
mod tests;
