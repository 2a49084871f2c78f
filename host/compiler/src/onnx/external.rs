//! Tensor data in files beside the model.
//!
//! A model says where its data is, so a model from elsewhere could ask for any file of its user.
//! Only regular files inside the model's folder are opened: a location that is absolute, climbs
//! by `..` or leaves the folder through a symbolic link is refused. A model that is a link itself
//! has the folder of what it leads to as well: so caches keep a model and its data, by their hashes.

use std::{
    collections::HashMap,
    fs, io,
    path::{Component, Path, PathBuf},
};

use crate::io::{FileError, MappedSlice, Mapping, quoted};

/// The files with external data, mapped when first needed.
#[derive(Debug)]
pub(super) struct ExternalFiles {
    model: PathBuf,
    folder: PathBuf,
    /// The folders of the model and of what it leads to, without symbolic links, once they are needed.
    real_folders: Vec<PathBuf>,
    open: HashMap<String, Mapping>,
}

/// External data that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
pub enum ExternalProblem {
    #[error("it has no location")]
    NoLocation,
    #[error("the location {0} is not a plain path inside the model's folder")]
    Location(String),
    #[error("the location {location} leads out of the model's folder to `{}`", real.display())]
    Escape { location: String, real: PathBuf },
    #[error("`{}` cannot be found: {cause}", path.display())]
    NotFound { path: PathBuf, cause: io::Error },
    #[error("{key} {value} is not a number of bytes")]
    Number { key: &'static str, value: String },
    #[error("the shape takes {expected} bytes, but its length is {length}")]
    Length { expected: usize, length: u64 },
    #[error("bytes {offset} to {offset}+{length} of {location} are asked for, but it has {file}")]
    Range { location: String, offset: u64, length: usize, file: usize },
    #[error(transparent)]
    File(#[from] FileError),
}

impl ExternalFiles {
    /// Files in the folder of `model`.
    pub(super) fn beside(model: &Path) -> Self {
        let folder = match model.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let (model, folder) = (model.to_owned(), folder.to_owned());
        Self { model, folder, real_folders: Vec::new(), open: HashMap::new() }
    }

    /// The `expected` bytes that the entries of a tensor's `external_data` point to.
    pub(super) fn find(
        &mut self,
        entries: &[(&str, &str)],
        expected: usize,
    ) -> Result<MappedSlice, ExternalProblem> {
        let location = entry(entries, "location").ok_or(ExternalProblem::NoLocation)?;
        let offset = number(entries, "offset")?.unwrap_or(0);
        // Without a length the data goes on to the end of the file; more than the shape takes
        // is then no contradiction.
        let length = number(entries, "length")?;
        if let Some(length) = length.filter(|&length| length != expected as u64) {
            return Err(ExternalProblem::Length { expected, length });
        }
        let file = self.file(location)?;
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(expected));
        start.zip(end).and_then(|(start, end)| file.slice(start..end)).ok_or_else(|| {
            let location = quoted(location);
            ExternalProblem::Range { location, offset, length: expected, file: file.len() }
        })
    }

    /// The files that data was taken from.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.open.values().map(Mapping::path)
    }

    fn file(&mut self, location: &str) -> Result<Mapping, ExternalProblem> {
        if let Some(file) = self.open.get(location) {
            return Ok(file.clone());
        }
        check_location(location)?;
        let path = self.folder.join(location);
        let real = real_path(&path)?;
        if self.real_folders.is_empty() {
            self.real_folders.push(real_path(&self.folder)?);
            let of_model = fs::canonicalize(&self.model).ok();
            self.real_folders.extend(of_model.and_then(|it| it.parent().map(Path::to_owned)));
        }
        if !self.real_folders.iter().any(|folder| real.starts_with(folder)) {
            return Err(ExternalProblem::Escape { location: quoted(location), real });
        }
        let file = Mapping::open(&real)?;
        self.open.insert(location.to_owned(), file.clone());
        Ok(file)
    }
}

fn check_location(location: &str) -> Result<(), ExternalProblem> {
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    // A backslash separates folders on some systems and is part of a name on others.
    let is_portable = !location.contains(['\\', '\0']);
    if is_portable && !location.is_empty() && Path::new(location).components().all(is_plain) {
        return Ok(());
    }
    Err(ExternalProblem::Location(quoted(location)))
}

fn real_path(path: &Path) -> Result<PathBuf, ExternalProblem> {
    fs::canonicalize(path)
        .map_err(|cause| ExternalProblem::NotFound { path: path.to_owned(), cause })
}

/// The last entry of this key.
fn entry<'a>(entries: &[(&str, &'a str)], key: &str) -> Option<&'a str> {
    entries.iter().rev().find(|(found, _)| *found == key).map(|(_, value)| *value)
}

fn number(entries: &[(&str, &str)], key: &'static str) -> Result<Option<u64>, ExternalProblem> {
    let Some(value) = entry(entries, key) else { return Ok(None) };
    // `parse` would accept a plus sign.
    let digits = Some(value).filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    number.map(Some).ok_or_else(|| ExternalProblem::Number { key, value: quoted(value) })
}
