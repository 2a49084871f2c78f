//! What can be wrong with a file. Every message names its path.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::io::{NpyProblem, WeightsProblem};

/// A file that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot open `{}`: {cause}", path.display())]
    Open { path: PathBuf, cause: io::Error },

    #[error("cannot read `{}`: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },

    #[error("cannot write `{}`: {cause}", path.display())]
    Write { path: PathBuf, cause: io::Error },

    #[error("`{}` is {what}, expected a regular file", path.display())]
    NotRegular { path: PathBuf, what: &'static str },

    #[error("nobody writes to the pipe `{}`, after {} seconds", path.display(), limit.as_secs())]
    NoWriter { path: PathBuf, limit: Duration },

    #[error("`{}` cannot be written: {}", path.display(), as_input(path, input))]
    IsInput { path: PathBuf, input: PathBuf },

    #[error("`{}` and `{}` are the same file, and two outputs", other.display(), path.display())]
    SameOutput { path: PathBuf, other: PathBuf },

    #[error("`{}` is empty", path.display())]
    Empty { path: PathBuf },

    #[error("`{}`: {problem}", path.display())]
    Npy { path: PathBuf, problem: NpyProblem },

    #[error("`{}`, array {}: {problem}", path.display(), quoted(array))]
    NpzArray { path: PathBuf, array: String, problem: NpyProblem },

    #[error("`{}` is not a usable .npz archive: {cause}", path.display())]
    Npz { path: PathBuf, cause: zip::result::ZipError },

    #[error("`{}`: {problem}", path.display())]
    Weights { path: PathBuf, problem: WeightsProblem },
}

fn as_input(path: &Path, input: &Path) -> String {
    match path == input {
        true => "it is read as input".to_owned(),
        false => format!("it is the file that is read as `{}`", input.display()),
    }
}

/// A name from a file, quoted, escaped, and cut where it is longer than a line should be.
pub fn quoted(name: &str) -> String {
    const LONGEST: usize = 120;
    let shown: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    let cut = if name.chars().nth(LONGEST).is_some() { "…" } else { "" };
    format!("`{shown}{cut}`")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_escaped_and_cut() {
        assert_eq!(quoted("a\nb"), "`a\\nb`");
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), 123);
    }
}
