//! Loops on several threads.

use tenon_schedule::{Block, Loop, Schedule, Tail};

use crate::attempt;

/// Fewer operations are done before threads have begun.
pub(crate) const WORK_FOR_THREADS: i64 = 1 << 15;
/// What a function such as `exp` costs, in operations.
const FUNCTION: i64 = 16;
/// Steps of a parallel loop that are enough for all threads to get their share.
const TASKS: i64 = 64;

/// Spreads the loops around a block over the threads, from the outermost on; a single loop in pieces of whole vectors.
pub(crate) fn parallelize(schedule: &mut Schedule, block: Block, lanes: i64) {
    let Ok(loops) = schedule.loops(block) else { return };
    let Some(&outermost) = loops.first() else { return };
    if loops.iter().any(|&each| !schedule.is_serial(each)) {
        return;
    }
    let Ok(inside) = schedule.children(outermost) else { return };
    let work: i64 = inside.iter().map(|&block| work(schedule, block)).fold(0, i64::saturating_add);
    if work < WORK_FOR_THREADS {
        return;
    }
    match loops.as_slice() {
        &[only] if inside.len() == 1 => in_pieces(schedule, only, lanes),
        &[only] => drop(attempt(schedule, |schedule| schedule.parallel(only))),
        [outer @ .., _] => together(schedule, outer),
        [] => {}
    }
}

/// Operations of a block in all steps of the loops around it.
pub(crate) fn work(schedule: &mut Schedule, block: Block) -> i64 {
    let Ok(loops) = schedule.loops(block) else { return 0 };
    let work = schedule.work(block);
    let each = 1 + work.operations as i64 + FUNCTION * work.functions as i64;
    steps(schedule, &loops).saturating_mul(each)
}

/// The steps of loops; one whose extent is not known counts as many.
fn steps(schedule: &Schedule, loops: &[Loop]) -> i64 {
    let extents = loops.iter().map(|&each| schedule.extent(each).unwrap_or(WORK_FOR_THREADS));
    extents.fold(1, i64::saturating_mul)
}

/// As few of the outer loops as make steps enough, as one parallel loop; all that can be where there are fewer.
fn together(schedule: &mut Schedule, outer: &[Loop]) {
    let enough = (1..=outer.len()).find(|&count| steps(schedule, &outer[..count]) >= TASKS);
    for count in (1..=enough.unwrap_or(outer.len())).rev() {
        let is_done = attempt(schedule, |schedule| {
            let joined = match count {
                1 => outer[0],
                _ => schedule.fuse(&outer[..count])?,
            };
            schedule.parallel(joined)
        });
        if is_done {
            return;
        }
    }
}

/// A loop as a parallel one over pieces.
fn in_pieces(schedule: &mut Schedule, only: Loop, lanes: i64) {
    let Some(extent) = schedule.extent(only) else { return };
    let Some(count) = pieces(extent, lanes) else { return };
    attempt(schedule, |schedule| {
        let parts = schedule.split(only, &[Some(count), None], Tail::Perfect)?;
        schedule.parallel(parts[0])
    });
}

/// How many pieces of whole vectors a loop is cut into: the most up to [`TASKS`], or of any length where none are whole.
fn pieces(extent: i64, lanes: i64) -> Option<i64> {
    let divides = |count: &i64| extent % count == 0;
    let is_whole = |count: &i64| (extent / count) % lanes == 0;
    let counts = || (2..=TASKS).rev().filter(divides);
    counts().find(is_whole).or_else(|| counts().next())
}
