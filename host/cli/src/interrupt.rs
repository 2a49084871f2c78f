//! Ctrl-C: passes are asked to stop, files are written whole or not at all, and a second one ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::output::note;
use tenon_compiler::diagnostics::Diagnostic;
use tenon_compiler::io::wait_for_writes;
use tenon_compiler::passes::Instrument;
use tenon_compiler::registry::{at_hand, leave};

/// The exit code of a program that was interrupted, as shells have it.
pub(super) const EXIT_CODE: u8 = 130;

/// Whether the program was interrupted.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Runs that look at their flag themselves.
static WATCHFUL: AtomicUsize = AtomicUsize::new(0);

/// Prepares for Ctrl-C. Where that fails, it ends the program as it always has.
pub(super) fn prepare(cancelled: Arc<AtomicBool>) {
    let handler = move || {
        let is_second = INTERRUPTED.swap(true, Ordering::Relaxed);
        cancelled.store(true, Ordering::Relaxed);
        if is_second {
            leave(EXIT_CODE.into());
        }
        let awaited = at_hand().join(", ");
        if WATCHFUL.load(Ordering::Relaxed) == 0 {
            if !awaited.is_empty() {
                note(format!("interrupted in {awaited}"));
            }
            // Not here: a second interruption must find this thread free.
            thread::spawn(|| {
                let _writes = wait_for_writes();
                leave(EXIT_CODE.into());
            });
            return;
        }
        let awaited = if awaited.is_empty() { "what is at hand" } else { &awaited };
        note(format!("interrupted: waiting for {awaited} to stop; a second Ctrl-C ends at once"));
    };
    // The program has one handler, and runs without it as well.
    let _ = ctrlc::set_handler(handler);
}

/// Whether the program was interrupted.
pub(super) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// While passes run that it watches, an interruption sets the flag and nothing more.
pub(super) struct Watchful;

impl Instrument for Watchful {
    fn enter(&mut self) -> Result<(), Box<Diagnostic>> {
        WATCHFUL.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn exit(&mut self) -> Result<(), Box<Diagnostic>> {
        WATCHFUL.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}
