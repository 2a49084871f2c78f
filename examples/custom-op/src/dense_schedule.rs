//! How `nn.dense` runs on processors with vectors of 512 bits.
//!
//! ```ir
//! for %i … { for %j … { for %k … {            for %i … parallel { for %j_0 … {
//!   block "dense" … init … } } }        =>      for %j_1 in 0..16 vectorized { block "dense_init" … }
//!                                               for %k … { for %j_1 in 0..16 vectorized { block "dense_update" … } } } }
//! ```
//!
//! Sixteen sums run side by side, in one vector. On other processors, and for products of which the columns do not fill
//! vectors, others are asked.

use tenon_plugin_api::rule;
use tenon_schedule::{Refusal, Result, Tail, Task};

/// Sixteen sums side by side.
#[rule(schedule, key = "nn.dense", benefit = 9, when = has_wide_vectors)]
fn dense(task: &mut Task) -> Result<()> {
    let schedule = &mut task.schedule;
    let block = schedule.anchor()?;
    let &[i, j, k] = schedule.loops(block)?.as_slice() else {
        return Err(Refusal::new("it is no product of two matrices"));
    };
    let columns = schedule.split(j, &[None, Some(16)], Tail::Perfect)?;
    schedule.reorder(&[i, columns[0], k, columns[1]])?;
    let init = schedule.decompose_reduction(block, k)?;
    let first = schedule.loops(init)?;
    schedule.vectorize(first[first.len() - 1])?;
    schedule.vectorize(columns[1])?;
    schedule.parallel(i)
}

fn has_wide_vectors(task: &Task) -> bool {
    task.machine().lanes() == 16
}
