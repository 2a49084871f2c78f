//! What stands in the place of `host/runtime/src/sync.rs`.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
pub(crate) use loom::thread;

/// As the host's; loom looks who touches it when.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(loom::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn with_mut<R>(&self, touch: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(touch)
    }
}

/// Nobody waits for long: looking again would give no order that giving way does not.
#[derive(Default)]
pub(crate) struct Patience(());

impl Patience {
    pub(crate) fn is_over(&mut self) -> bool {
        true
    }
}
