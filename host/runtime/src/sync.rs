//! What the thread pool stands on. `tests/interleavings` has a module of the same items in this place, which tries
//! every order of the threads.

use std::time::{Duration, Instant};

pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
pub(super) use std::thread;

/// How long a thread looks for a change before it gives way to others. Waking it costs about as much.
pub(super) const SPIN: Duration = Duration::from_micros(if cfg!(miri) { 0 } else { 50 });

/// Rounds between two looks at the clock.
const ROUNDS: u32 = if cfg!(miri) { 1 } else { 64 };

/// A place that threads touch one at a time, as they agree on.
#[derive(Debug, Default)]
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Calls `touch` with the address of what is in it.
    pub(super) fn with_mut<R>(&self, touch: impl FnOnce(*mut T) -> R) -> R {
        touch(self.0.get())
    }
}

/// Counts the rounds of a thread that waits.
#[derive(Default)]
pub(super) struct Patience {
    rounds: u32,
    since: Option<Instant>,
}

impl Patience {
    /// Waits a moment; true when it has been [`SPIN`] already.
    pub(super) fn is_over(&mut self) -> bool {
        self.rounds = self.rounds.wrapping_add(1);
        if !self.rounds.is_multiple_of(ROUNDS) {
            std::hint::spin_loop();
            return false;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() >= SPIN
    }
}
