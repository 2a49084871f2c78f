//! Opens regular files and nothing else.
//!
//! Opening a FIFO waits for a writer, and reading a device may never end, so the kind is looked
//! at before the file is opened, and again afterwards on what was really opened.

use std::{
    fs::{self, File, FileType},
    io::{IsTerminal, Read},
    path::Path,
};

use crate::io::FileError;

/// Opens `path` for reading and tells its length.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64), FileError> {
    let open = |cause| FileError::Open { path: path.to_owned(), cause };
    check_kind(path, fs::metadata(path).map_err(open)?.file_type())?;
    let file = File::open(path).map_err(open)?;
    let metadata = file.metadata().map_err(open)?;
    check_kind(path, metadata.file_type())?;
    Ok((file, metadata.len()))
}

/// Reads a regular file that is a text.
pub(crate) fn read_text(path: &Path) -> Result<String, FileError> {
    let (mut file, _) = open_regular(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)
        .map_err(|cause| FileError::Read { path: path.to_owned(), cause })?;
    Ok(text)
}

/// The first `most` bytes of a file, a pipe, or what a person types. Other devices are refused: what they hold has no end.
pub(crate) fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let read = |cause| FileError::Read { path: path.to_owned(), cause };
    let file = File::open(path).map_err(read)?;
    let metadata = file.metadata().map_err(read)?;
    if is_device(metadata.file_type()) && !file.is_terminal() {
        return Err(FileError::NotRegular { path: path.to_owned(), what: "a device" });
    }
    let mut bytes = Vec::with_capacity(metadata.len().min(most) as usize);
    file.take(most).read_to_end(&mut bytes).map_err(read)?;
    Ok(bytes)
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
