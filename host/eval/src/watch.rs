//! Which operators of plugins are evaluated now, and since when. Who waits for one without a limit of its own cannot stop it,
//! but somebody else can tell which one it is.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// What runs, of each thread the innermost last.
static RUNNING: Mutex<Vec<(ThreadId, &'static str, Instant)>> = Mutex::new(Vec::new());

/// While this lives, an operator is evaluated by this thread.
pub(super) struct Watched(());

impl Watched {
    pub(super) fn new(op: &'static str) -> Self {
        running().push((thread::current().id(), op, Instant::now()));
        Self(())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let this = thread::current().id();
        let mut running = running();
        if let Some(index) = running.iter().rposition(|(thread, ..)| *thread == this) {
            running.remove(index);
        }
    }
}

/// The operator that has been evaluated for the longest time, and how long that is.
pub fn longest() -> Option<(&'static str, Duration)> {
    let running = running();
    running.iter().map(|(_, op, since)| (*op, since.elapsed())).max_by_key(|&(_, time)| time)
}

fn running() -> MutexGuard<'static, Vec<(ThreadId, &'static str, Instant)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
