//! What stands before the first opening of a library: the quarantine, the trial in a child, the journal.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

use super::journal::{self, Act, Doing, LeftBehind, death};
use super::probe::{ProbeLimits, Verdict, probe};
use super::state::{Quarantined, State};
use super::{LibraryFile, LoadError};
use crate::io::FileError;

/// The program in whose processes libraries are tried out, and what is remembered of them.
pub struct Guard {
    program: PathBuf,
    state: Option<State>,
    threads: Option<usize>,
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
        journal::left_behind(state).iter().filter_map(|left| follow(state, left)).collect()
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

    /// Opens a library by `open` when it is known to do no harm, or does none in a child. What the program dies of
    /// meanwhile, the next one knows.
    pub(super) fn open<T>(
        &self,
        file: &LibraryFile,
        sha256: &str,
        limits: ProbeLimits,
        notes: &Notes,
        open: impl FnOnce() -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        notes.unless_written(journal::begin(self.state.as_ref()));
        let note = |act| Doing::new(act, sha256, "", file.path()).note();
        let path = || file.path().to_owned();
        let quarantine = |reason| LoadError::Quarantined { path: path(), reason };
        if let Some(library) = self.quarantined(sha256) {
            return Err(quarantine(library.reason));
        }
        if !self.state.as_ref().is_some_and(|state| state.is_known(sha256)) {
            let probe = || probe(&self.program, file.path(), sha256, limits);
            let verdict = journal::during(&note(Act::Trying), probe).map_err(|reason| {
                LoadError::Untried { path: path(), reason: reason.to_string() }
            })?;
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
        journal::during(&note(Act::Opening), open)
    }
}

/// What follows from what a process did when it died, and what there is to say of it. A death that came from elsewhere
/// says nothing of a library; one of which nothing is known may have, so the library is tried out anew.
fn follow(state: &State, LeftBehind { doing, death }: &LeftBehind) -> Option<String> {
    let Doing { act, sha256, what, file } = doing;
    let reason = match (act, *death) {
        (Act::Waiting, _) => return None,
        (Act::Running, death::ELSEWHERE | death::BY_CHILD) => return None,
        (Act::Running, death::SILENT) => {
            return Some(format!(
                "an earlier run ended without a word while {what} of {file} ran: it was killed, memory was short, \
                 or the pass ended it"
            ));
        }
        (Act::Running, death) => {
            // Nothing else can be kept out of this process.
            let remedy = match what.starts_with("pass ") {
                true => ": `isolate = true` in registry.toml keeps it in a process of its own",
                false => "",
            };
            return Some(format!(
                "an earlier run died in {what} of {file} ({}){remedy}",
                cause(death)
            ));
        }
        (Act::Trying, death::BY_CHILD) => "when it was tried out, it ended the program".to_owned(),
        (Act::Opening, death) if is_evidence(death) => {
            format!("it ended the program that opened it ({})", cause(death))
        }
        (Act::Trying | Act::Opening, death) => {
            return match (state.set_unknown(sha256), death) {
                (Err(error), _) => Some(format!("{file}: it cannot be tried out anew: {error}")),
                (Ok(()), death::SILENT) => Some(format!(
                    "{file}: the program was ended while it opened this library, which is tried out anew"
                )),
                (Ok(()), _) => None,
            };
        }
    };
    let library = Quarantined { file: file.clone(), sha256: sha256.clone(), reason };
    Some(match state.set_quarantined(&library) {
        Ok(()) => format!("{file}: {}; it is in quarantine. {REMEDY}", library.reason),
        Err(error) => format!("{file}: {}; {error}", library.reason),
    })
}

/// Whether a death was the deed of the thread that was at it.
fn is_evidence(death: i32) -> bool {
    death > 0 || death == death::EXIT
}

fn cause(death: i32) -> String {
    match death {
        death::EXIT => "it called exit()".to_owned(),
        signal => ExitStatus::from_raw(signal).to_string(),
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
