//! Any program: what is cheap is computed where it is read, what is read row by row in that row, outer loops run on threads, inner
//! ones in vectors.
//!
//! ```ir
//! for %i … { for %r … { block "sum" … } }                  for %i in 0..4096 parallel {
//! for %i … { for %j … { block "mean" … } }                   for %r … { block "sum" … }
//! for %i … { for %j in 0..64 {                        =>     for %j in 0..64 vectorized {
//!   block "out" … } }                                          block "out" … } }              with what "mean" computes
//! ```
//!
//! Each step that is refused is left out: a program that nothing can be done to runs as it is written.

use tenon_plugin_api::rule;
use tenon_schedule::{Result, Task};

use crate::{inlining, rows, threads, transposes, vectors, windows};

/// Rows that are computed at once, on threads and in vectors.
#[rule(schedule, key = "any")]
fn fallback(task: &mut Task) -> Result<()> {
    if !task.is_for_cpu() {
        return Ok(());
    }
    let (lanes, has_threads) = (task.machine().lanes(), task.machine().threads > 1);
    task.because(
        "no rule knows the program: rows at once, on threads and in vectors where that is allowed",
    );
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() || schedule.all_blocks().len() > inlining::MAX_BLOCKS {
        return Ok(());
    }
    inlining::inline_all(schedule);
    rows::compute_in_rows(schedule, lanes);
    windows::write_out(schedule);
    for block in schedule.all_blocks() {
        vectors::join_rows(schedule, block);
        transposes::in_squares(schedule, block, lanes);
    }
    if has_threads {
        for block in schedule.all_blocks() {
            threads::parallelize(schedule, block, lanes);
        }
    }
    for block in schedule.all_blocks() {
        vectors::vectorize(schedule, block, lanes);
    }
    Ok(())
}
