//! What stands before the first opening of a library: the quarantine, the trial in a child, the journal.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::probe::{ProbeLimits, Verdict, probe};
use super::state::{Opening, Quarantined, State};
use super::{LibraryFile, LoadError};
use crate::io::FileError;

/// The program in whose processes libraries are tried out, and what is remembered of them.
pub struct Guard {
    program: PathBuf,
    state: Option<State>,
    threads: Option<usize>,
}

/// A library may be opened now. Until this is dropped, a death of the process is the library's fault.
pub(super) struct Admitted {
    _opening: Option<Opening>,
}

impl Guard {
    /// A guard that starts `program`, which is `tenon` or answers its hidden commands, and that remembers what it
    /// finds out in `state`. Without a state each library is tried out in each run.
    pub fn new(program: impl Into<PathBuf>, state: Option<State>) -> Guard {
        Guard { program: program.into(), state, threads: None }
    }

    /// The same with so many threads in each process of an isolated plugin; one a processor where nothing is said.
    pub fn with_threads(self, threads: Option<usize>) -> Guard {
        Guard { threads, ..self }
    }

    /// What is remembered.
    pub fn state(&self) -> Option<&State> {
        self.state.as_ref()
    }

    /// The program.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The threads of an isolated plugin's process.
    pub(super) fn threads(&self) -> Option<usize> {
        self.threads
    }

    /// Gives up a state that cannot be relied on, and puts what a process died of into quarantine. Gives what there is to
    /// say of it.
    pub(super) fn begin(&mut self) -> Vec<String> {
        let Some(state) = &self.state else {
            return vec![
                "neither XDG_STATE_HOME nor HOME is set, so nothing is remembered of plugins"
                    .to_owned(),
            ];
        };
        if let Some(writers) = state.writers() {
            self.state = None;
            return vec![format!("{writers}, so what it says of plugins is not believed")];
        }
        let dead = state.left_behind();
        let died = |library: &Quarantined| match state.set_quarantined(library) {
            Ok(()) => {
                format!("{}: {}; it is in quarantine. {}", library.file, library.reason, REMEDY)
            }
            Err(error) => format!("{}: {}; {error}", library.file, library.reason),
        };
        dead.iter().map(died).collect()
    }

    /// The digest of a library, read from the file only when it is not known.
    pub(super) fn digest(&self, file: &LibraryFile, notes: &Notes) -> Result<String, LoadError> {
        let Some(state) = &self.state else { return Ok(file.sha256()?) };
        let identity = file.identity();
        if let Some(known) = state.digest(&identity) {
            return Ok(known);
        }
        let digest = file.sha256()?;
        notes.unless_written(state.set_digest(&identity, &digest));
        Ok(digest)
    }

    /// Why a library is not to be opened, by what is remembered.
    pub(super) fn quarantined(&self, sha256: &str) -> Option<Quarantined> {
        self.state.as_ref()?.quarantined(sha256)
    }

    /// Lets a library be opened when it is known to do no harm, or does none in a child.
    pub(super) fn admit(
        &self,
        file: &LibraryFile,
        sha256: &str,
        limits: ProbeLimits,
        notes: &Notes,
    ) -> Result<Admitted, LoadError> {
        let path = || file.path().to_owned();
        let quarantine = |reason| LoadError::Quarantined { path: path(), reason };
        if let Some(library) = self.quarantined(sha256) {
            return Err(quarantine(library.reason));
        }
        if !self.state.as_ref().is_some_and(|state| state.is_known(sha256)) {
            let verdict = probe(&self.program, file.path(), sha256, limits)
                .map_err(|reason| LoadError::Untried { path: path(), reason })?;
            match (verdict, &self.state) {
                (Verdict::Harmless, None) => {}
                (Verdict::Harmless, Some(state)) => notes.unless_written(state.set_known(sha256)),
                (Verdict::Refused(error), _) => return Err(LoadError::Refused(error)),
                (Verdict::Harmful(reason), state) => {
                    let file = file.path().display().to_string();
                    let (sha256, reason) = (sha256.to_owned(), reason);
                    let library = Quarantined { file, sha256, reason };
                    if let Some(state) = state {
                        notes.unless_written(state.set_quarantined(&library));
                    }
                    return Err(quarantine(library.reason));
                }
            }
        }
        let opening = self.state.as_ref().map(|state| state.begin_opening(file.path(), sha256));
        Ok(Admitted { _opening: opening.and_then(|opening| notes.unless_failed(opening)) })
    }
}

/// What to do about a library in quarantine.
pub(super) const REMEDY: &str =
    "Use another build of it, or let it be tried again with `tenon plugins quarantine clear FILE`";

/// What a user should know, each thing once.
#[derive(Default)]
pub(super) struct Notes(Mutex<Vec<String>>);

impl Notes {
    pub(super) fn add(&self, text: String) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Work goes on when something cannot be remembered.
    fn unless_failed<T>(&self, written: Result<T, FileError>) -> Option<T> {
        match written {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(format!("what is known of plugins cannot be remembered: {error}"));
                None
            }
        }
    }

    fn unless_written(&self, written: Result<(), FileError>) {
        self.unless_failed(written);
    }
}
