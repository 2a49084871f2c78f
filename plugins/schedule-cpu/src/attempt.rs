//! Steps of a schedule that are done as a whole or not at all.

use tenon_schedule::{Result, Schedule};

/// Does something, or nothing where a part of it is refused; whether it was done.
pub(crate) fn attempt(
    schedule: &mut Schedule,
    work: impl FnOnce(&mut Schedule) -> Result<()>,
) -> bool {
    let before = schedule.snapshot();
    let is_done = work(schedule).is_ok();
    if !is_done {
        schedule.restore(before);
    }
    is_done
}
