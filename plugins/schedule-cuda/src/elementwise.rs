//! Programs that compute each element by itself: a thread for each.
//!
//! ```ir
//! for %i in 0..50 { for %j in 0..70 {              for %i_j_0 in 0..14 thread "blockIdx.x" {
//!   block "exp" (%vi = %i, %vj = %j) … } }    =>     for %i_j_1 in 0..256 thread "threadIdx.x" {
//!                                                      block "exp" (…) where %i_j_0 * 256 + %i_j_1 < 3500 … } }
//! ```
//!
//! Neighbouring threads have neighbouring elements, which a device reads and writes together.

use tenon_plugin_api::rule;
use tenon_schedule::{Axis, Result, Tail, Task};

use crate::programs::{inline_all, is_cuda, not_this};

/// Threads of a block: enough to hide how long memory takes, and few enough for any registers.
const THREADS: i64 = 256;

/// A thread for each element.
#[rule(schedule, key = "any", benefit = 0)]
fn elementwise(task: &mut Task) -> Result<()> {
    if !is_cuda(task) {
        return not_this("it is for another device");
    }
    let threads = task.target().int("block_threads").unwrap_or(THREADS).min(THREADS);
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() {
        return not_this("a statement is in no block");
    }
    inline_all(schedule);
    let blocks = schedule.all_blocks();
    let &[block] = blocks.as_slice() else {
        return not_this("it is more than one block");
    };
    if schedule.is_reduction(block) {
        return not_this("it reduces");
    }
    let loops = schedule.loops(block)?;
    let all = match loops.as_slice() {
        [] => schedule.add_unit_loop(block)?,
        &[only] => only,
        several => schedule.fuse(several)?,
    };
    let parts = schedule.split(all, &[None, Some(threads)], Tail::Guard)?;
    schedule.bind(parts[0], Axis::BlockX)?;
    schedule.bind(parts[1], Axis::ThreadX)
}
