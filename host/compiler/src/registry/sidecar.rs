//! The file beside a library without notes, `libx.so.tenon.json`: a JSON array of the records of its manifest. That
//! the library says the same is checked when it is opened.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::ManifestError;
use super::notes::MAX_NOTES;
use crate::io::{FileError, open_regular};

/// Where the file of a library stands, if there is one.
pub(super) fn path_of(library: &Path) -> Option<PathBuf> {
    let mut path = library.as_os_str().to_owned();
    path.push(".tenon.json");
    let path = PathBuf::from(path);
    // A link that leads nowhere is there all the same.
    path.symlink_metadata().is_ok().then_some(path)
}

/// The records in the file of a library, one a line.
pub(super) fn records(library: &Path) -> Result<String, ManifestError> {
    let Some(path) = path_of(library) else {
        return Err(ManifestError::NoManifest { path: library.to_owned() });
    };
    let broken = |reason: String| ManifestError::Broken { path: path.clone(), reason };
    let (file, _) = open_regular(&path)?;
    // What it says of its size need not be so.
    let mut text = String::new();
    file.take(MAX_NOTES + 1)
        .read_to_string(&mut text)
        .map_err(|cause| FileError::Read { path: path.clone(), cause })?;
    if text.len() as u64 > MAX_NOTES {
        return Err(broken(format!("it is larger than {MAX_NOTES} bytes")));
    }
    let records: Vec<serde_json::Value> =
        serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
    let lines: Vec<String> = records.iter().map(serde_json::Value::to_string).collect();
    Ok(lines.join("\n"))
}
