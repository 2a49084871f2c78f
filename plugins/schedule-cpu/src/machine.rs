//! What a program is for.

use tenon_schedule::Task;

/// Whether a program runs on a processor, rather than on a device with threads of its own.
pub(crate) fn is_cpu(task: &Task) -> bool {
    task.target().str("kind").is_none_or(|kind| kind == "cpu")
}
