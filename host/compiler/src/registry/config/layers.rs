//! Which files make up the registry.
//!
//! | layer | file |
//! |---|---|
//! | the program's | `registry.toml` beside the program, or in one of the two folders above it |
//! | the system's | `/etc/tenon/registry.toml` |
//! | the user's | `$XDG_CONFIG_HOME/tenon/registry.toml`, by default below `~/.config` |
//! | a project's | what `--registry` names, in order |
//!
//! Only a file of the program's own, of the administrator or of the user is read without being named. A
//! project's file says which libraries are opened, so a folder that somebody was sent must not bring its
//! own: neither the working directory nor the folder of a model is looked at.
//!
//! `TENON_REGISTRY` names a file that stands for the first three, so that tests do not depend on what a
//! computer has.

use std::env;
use std::path::{Path, PathBuf};

use super::ConfigError;

const NAME: &str = "registry.toml";

/// The files to read for a program, the lowest layer first.
pub(super) fn layers(
    program: Option<&Path>,
    named: &[PathBuf],
) -> Result<Vec<PathBuf>, ConfigError> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut searched = Vec::new();
    match env::var_os("TENON_REGISTRY") {
        Some(path) => files.push(path.into()),
        None => {
            let beside = beside(program);
            files.extend(beside.iter().find(|path| path.is_file()).cloned());
            let others = [Some(PathBuf::from("/etc/tenon").join(NAME)), users()];
            files.extend(others.iter().flatten().filter(|path| path.is_file()).cloned());
            searched.extend(beside.into_iter().chain(others.into_iter().flatten()));
        }
    }
    files.extend(named.iter().cloned());
    match files.is_empty() {
        true => Err(ConfigError::NotFound { searched }),
        false => Ok(without_repetitions(files)),
    }
}

/// The highest layer that is named, else the user's.
pub(super) fn file_to_edit(named: &[PathBuf]) -> Result<PathBuf, ConfigError> {
    let named = named.last().cloned();
    let for_tests = || env::var_os("TENON_REGISTRY").map(PathBuf::from);
    named
        .or_else(for_tests)
        .or_else(users)
        .ok_or_else(|| ConfigError::NotFound { searched: vec![PathBuf::from("~/.config/tenon")] })
}

fn beside(program: Option<&Path>) -> Vec<PathBuf> {
    let program = program.and_then(|path| path.canonicalize().ok());
    let folders = program.iter().flat_map(|path| path.ancestors().skip(1).take(3));
    folders.map(|folder| folder.join(NAME)).collect()
}

/// The user's file. A relative path in the environment is none: it would depend on the working directory.
fn users() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("tenon").join(NAME))
}

/// A file that is named again counts where it is named last.
fn without_repetitions(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let identity = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let identities: Vec<PathBuf> = files.iter().map(identity).collect();
    let is_last = |at: usize| !identities[at + 1..].contains(&identities[at]);
    files.into_iter().enumerate().filter(|&(at, _)| is_last(at)).map(|(_, file)| file).collect()
}
