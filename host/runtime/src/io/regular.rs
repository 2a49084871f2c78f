//! Opens regular files and nothing else.
//!
//! Opening a FIFO waits for a writer, and reading a device may never end, so the kind is looked
//! at before the file is opened, and again afterwards on what was really opened.

use std::{
    fs::{self, File, FileType},
    io::{ErrorKind, IsTerminal, Read},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::io::FileError;

/// How long somebody is waited for who writes to a pipe.
const WRITER: Duration = Duration::from_secs(5);

/// Opens `path` for reading and tells its length.
pub fn open_regular(path: &Path) -> Result<(File, u64), FileError> {
    let open = |cause| FileError::Open { path: path.to_owned(), cause };
    check_kind(path, fs::metadata(path).map_err(open)?.file_type())?;
    let file = File::open(path).map_err(open)?;
    let metadata = file.metadata().map_err(open)?;
    check_kind(path, metadata.file_type())?;
    Ok((file, metadata.len()))
}

/// Reads a regular file that is a text.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let (mut file, _) = open_regular(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)
        .map_err(|cause| FileError::Read { path: path.to_owned(), cause })?;
    Ok(text)
}

/// The first `most` bytes of a file, a pipe, or what a person types. Other devices are refused: what they hold has no end.
pub fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let read = |cause| FileError::Read { path: path.to_owned(), cause };
    let mut bytes = Vec::new();
    let file = match is_named_pipe(path) {
        true => open_pipe(path, &mut bytes)?,
        false => File::open(path).map_err(read)?,
    };
    let metadata = file.metadata().map_err(read)?;
    if is_device(metadata.file_type()) && !file.is_terminal() {
        return Err(FileError::NotRegular { path: path.to_owned(), what: "a device" });
    }
    let left = most.saturating_sub(bytes.len() as u64);
    bytes.reserve(metadata.len().min(left) as usize);
    file.take(left).read_to_end(&mut bytes).map_err(read)?;
    Ok(bytes)
}

/// Whether a path leads to a pipe in the file system, not to one that somebody has opened for this process.
fn is_named_pipe(path: &Path) -> bool {
    let real = path.canonicalize().and_then(fs::metadata);
    real.is_ok_and(|metadata| is_pipe(metadata.file_type()))
}

/// Opens a pipe to which somebody writes, and reads what came first: opening one that nobody writes to waits for ever.
#[cfg(unix)]
fn open_pipe(path: &Path, bytes: &mut Vec<u8>) -> Result<File, FileError> {
    use std::os::unix::fs::OpenOptionsExt;
    let read = |cause| FileError::Read { path: path.to_owned(), cause };
    let mut file =
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(read)?;
    let (start, mut first) = (Instant::now(), [0; 4096]);
    loop {
        match file.read(&mut first) {
            // Nobody has it open to write.
            Ok(0) if start.elapsed() >= WRITER => {
                return Err(FileError::NoWriter { path: path.to_owned(), limit: WRITER });
            }
            Ok(0) => thread::sleep(Duration::from_millis(20)),
            Ok(count) => {
                bytes.extend(&first[..count]);
                break;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(read(error)),
        }
    }
    rustix::io::ioctl_fionbio(&file, false).map_err(|error| read(error.into()))?;
    Ok(file)
}

#[cfg(not(unix))]
fn open_pipe(path: &Path, _: &mut Vec<u8>) -> Result<File, FileError> {
    File::open(path).map_err(|cause| FileError::Read { path: path.to_owned(), cause })
}

/// Refuses everything but regular files, with a word for what it is instead.
pub(crate) fn check_kind(path: &Path, kind: FileType) -> Result<(), FileError> {
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_dir() { "a directory" } else { special_kind(kind) };
    Err(FileError::NotRegular { path: path.to_owned(), what })
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_kind: FileType) -> bool {
    false
}

#[cfg(unix)]
fn is_device(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_kind: FileType) -> bool {
    false
}

#[cfg(unix)]
fn special_kind(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn special_kind(_kind: FileType) -> &'static str {
    "a special file"
}
