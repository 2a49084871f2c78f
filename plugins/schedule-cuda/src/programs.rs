//! What both rules ask of a program.

use tenon_schedule::{Refusal, Result, Schedule, Task};

/// Whether a program is for a device with blocks of threads.
pub(crate) fn is_cuda(task: &Task) -> bool {
    task.target().str("kind") == Some("cuda")
}

/// What a rule returns that has nothing to say about a program.
pub(crate) fn not_this<T>(why: &str) -> Result<T> {
    Err(Refusal::new(why))
}

/// Computes what is no result and no reduction where it is read, as far as that can be done.
pub(crate) fn inline_all(schedule: &mut Schedule) {
    for block in schedule.all_blocks() {
        if !schedule.is_reduction(block) && !schedule.writes_result(block) {
            let _ = schedule.inline(block);
        }
    }
}
