//! When the kernels of a run ended: code that is compiled to be profiled calls [`mark`] when a run begins, and behind each
//! kernel.

use std::cell::RefCell;
use std::time::{Duration, Instant};

thread_local! {
    static MARKS: RefCell<Vec<Instant>> = const { RefCell::new(Vec::new()) };
}

/// The symbol under which generated code finds [`mark`]. It exists in this process only.
pub const MARK: &str = "tenon_profile_mark";

/// Takes note of the time.
pub extern "C" fn mark() {
    let now = Instant::now();
    MARKS.with_borrow_mut(|marks| marks.push(now));
}

/// How long each kernel took of the runs that this thread made since it asked last, one run behind the other.
pub fn take() -> Vec<Duration> {
    let marks = MARKS.with_borrow_mut(std::mem::take);
    marks.windows(2).map(|pair| pair[1] - pair[0]).collect()
}
