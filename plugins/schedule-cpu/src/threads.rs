//! Loops on several threads.

use tenon_schedule::{Block, Loop, Schedule, Tail};

/// Fewer operations are done before threads have begun.
const WORK_FOR_THREADS: i64 = 1 << 15;
/// What a function such as `exp` costs, in operations.
const FUNCTION: i64 = 16;
/// Steps of a parallel loop that are enough for all threads to get their share.
const TASKS: i64 = 64;

/// Spreads the longest row of independent loops from the outermost on over the threads; a single loop in pieces of whole vectors.
pub(crate) fn parallelize(schedule: &mut Schedule, block: Block, lanes: i64) {
    let Ok(loops) = schedule.loops(block) else { return };
    if loops.is_empty() || loops.iter().any(|&each| !schedule.is_serial(each)) {
        return;
    }
    if steps(schedule, &loops).saturating_mul(cost(schedule, block)) < WORK_FOR_THREADS {
        return;
    }
    match loops.as_slice() {
        &[only] => in_pieces(schedule, only, lanes),
        [outer @ .., _] => together(schedule, outer),
        [] => {}
    }
}

/// Operations of a step of a block.
fn cost(schedule: &Schedule, block: Block) -> i64 {
    let work = schedule.work(block);
    1 + work.operations as i64 + FUNCTION * work.functions as i64
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
        let before = schedule.snapshot();
        let joined = match count {
            1 => Ok(outer[0]),
            _ => schedule.fuse(&outer[..count]),
        };
        match joined.and_then(|joined| schedule.parallel(joined)) {
            Ok(()) => return,
            Err(_) => schedule.restore(before),
        }
    }
}

/// A loop as a parallel one over pieces.
fn in_pieces(schedule: &mut Schedule, only: Loop, lanes: i64) {
    let Some(extent) = schedule.extent(only) else { return };
    let Some(count) = pieces(extent, lanes) else { return };
    let before = schedule.snapshot();
    let parallel = schedule
        .split(only, &[Some(count), None], Tail::Perfect)
        .and_then(|parts| schedule.parallel(parts[0]));
    if parallel.is_err() {
        schedule.restore(before);
    }
}

/// How many pieces of whole vectors a loop is cut into: the most up to [`TASKS`], or of any length where none are whole.
fn pieces(extent: i64, lanes: i64) -> Option<i64> {
    let divides = |count: &i64| extent % count == 0;
    let is_whole = |count: &i64| (extent / count) % lanes == 0;
    let counts = || (2..=TASKS).rev().filter(divides);
    counts().find(is_whole).or_else(|| counts().next())
}
