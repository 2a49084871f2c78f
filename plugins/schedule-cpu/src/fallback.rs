//! Any program: what can be computed where it is read is, outer loops run on threads, inner ones in vectors.
//!
//! ```ir
//! for %i … { for %j … { block "B" … } }            for %i_j in 0..4096 parallel {
//! for %i … { for %j in 0..dim(n) {                   for %j_0 … { for %j_1 in 0..16 vectorized {
//!   block "C" … } }                           =>       block "C" … } }        with what "B" computes
//!                                                    for %j_tail … { block "C_tail" … } }
//! ```
//!
//! Each step that is refused is left out: a program that nothing can be done to runs as it is written.

use tenon_plugin_api::rule;
use tenon_schedule::{Loop, Result, Schedule, Tail, Task};

/// Fewer steps are done before threads have begun.
const STEPS_FOR_THREADS: i64 = 1 << 14;

/// Parallel outer loops and vectors within them.
#[rule(schedule, key = "any")]
fn fallback(task: &mut Task) -> Result<()> {
    let lanes = task.lanes();
    let has_threads = task.threads() > 1;
    let schedule = &mut task.schedule;
    for block in schedule.all_blocks() {
        let _ = schedule.inline(block);
    }
    for block in schedule.all_blocks() {
        let loops = schedule.loops(block)?;
        let Some((&inner, outer)) = loops.split_last() else { continue };
        vectorize(schedule, inner, lanes);
        if has_threads {
            parallelize(schedule, outer, inner);
        }
    }
    Ok(())
}

/// The innermost loop in vectors; of one whose extent is not known the part that fills them.
fn vectorize(schedule: &mut Schedule, inner: Loop, lanes: i64) {
    match schedule.extent(inner) {
        Some(extent) if extent > 1 => drop(schedule.vectorize(inner)),
        Some(_) => {}
        None => {
            let before = schedule.snapshot();
            let vectorized = schedule
                .split(inner, &[None, Some(lanes)], Tail::Cut)
                .and_then(|parts| schedule.vectorize(parts[1]));
            if vectorized.is_err() {
                schedule.restore(before);
            }
        }
    }
}

/// The longest row of outer loops that are independent, as one parallel loop; a single loop that is long enough as it is.
fn parallelize(schedule: &mut Schedule, outer: &[Loop], inner: Loop) {
    let steps = |schedule: &Schedule, loops: &[Loop]| {
        // An extent that is not known counts as a large one.
        loops.iter().fold(1i64, |steps, &each| {
            steps.saturating_mul(schedule.extent(each).unwrap_or(STEPS_FOR_THREADS))
        })
    };
    let all = steps(schedule, outer).saturating_mul(schedule.extent(inner).unwrap_or(1));
    if all < STEPS_FOR_THREADS {
        return;
    }
    for count in (1..=outer.len()).rev() {
        let before = schedule.snapshot();
        let fused = match count {
            1 => Ok(outer[0]),
            _ => schedule.fuse(&outer[..count]),
        };
        match fused.and_then(|fused| schedule.parallel(fused)) {
            Ok(()) => return,
            Err(_) => schedule.restore(before),
        }
    }
}
