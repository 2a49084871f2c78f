//! Looking at code that may not end. It runs in this process and cannot be stopped, so it is looked at in a thread, which is left
//! to itself when it is silent for too long.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::Check;

/// Says what is looked at next, which the patience then is for.
pub(super) struct Progress(Sender<Told>);

enum Told {
    Next(&'static str, String),
    Done(Vec<Check>),
}

impl Progress {
    /// The check that is about to be made, and on what.
    pub(super) fn next(&self, check: &'static str, about: String) {
        // Nobody listens any more where the thread was left to itself.
        let _ = self.0.send(Told::Next(check, about));
    }
}

/// What `look` finds of `name`; where it does not end, that.
pub(super) fn with_patience(
    patience: Duration,
    name: &str,
    look: impl FnOnce(&Progress) -> Vec<Check> + Send + 'static,
) -> Result<Vec<Check>, Check> {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let progress = Progress(tell);
        let checks = look(&progress);
        let _ = progress.0.send(Told::Done(checks));
    });
    let (mut check, mut about) = ("opening", String::new());
    loop {
        match told.recv_timeout(patience) {
            Ok(Told::Next(next, call)) => (check, about) = (next, call),
            Ok(Told::Done(checks)) => return Ok(checks),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = patience.as_secs();
                let wrong = format!("{about}: it does not end within {seconds} seconds");
                return Err(Check::new(Some(name), check, String::new(), vec![wrong]));
            }
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => unreachable!("it has told what it found"),
            },
        }
    }
}
