//! When the kernels of a run ended: code that is compiled to be profiled calls [`mark`] when a run begins, and behind each
//! kernel.

use std::cell::RefCell;
use std::time::{Duration, Instant};

thread_local! {
    static MARKS: RefCell<Vec<(i64, Instant)>> = const { RefCell::new(Vec::new()) };
}

/// The symbol under which generated code finds [`mark`]. It exists in this process only.
pub const MARK: &str = "tenon_profile_mark";

/// Takes note of the time: 0 when a run begins, and behind each call of a kernel the number of the call, counted from 1.
pub extern "C" fn mark(number: i64) {
    let now = Instant::now();
    MARKS.with_borrow_mut(|marks| marks.push((number, now)));
}

/// How long calls of kernels took.
#[derive(Debug, Default)]
pub struct Profile {
    /// How many runs there were.
    pub runs: usize,
    /// The calls that were made, by their numbers counted from 0, one run behind the other.
    pub calls: Vec<(usize, Duration)>,
}

/// The runs that this thread made since it asked last.
pub fn take() -> Profile {
    let marks = MARKS.with_borrow_mut(std::mem::take);
    let call = |pair: &[(i64, Instant)]| {
        let ((_, begin), (number, end)) = (pair[0], pair[1]);
        Some((usize::try_from(number - 1).ok()?, end - begin))
    };
    let runs = marks.iter().filter(|&&(number, _)| number == 0).count();
    Profile { runs, calls: marks.windows(2).filter_map(call).collect() }
}
