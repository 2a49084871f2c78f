//! Loops on several threads.

use tenon_schedule::{Block, Loop, Schedule, Tail};

use crate::attempt;

/// Fewer operations are done before threads have begun.
pub(crate) const WORK_FOR_THREADS: i64 = 1 << 15;
/// Fewer operations are not worth the division by an extent that is not known.
const WORK_FOR_DIVISION: i64 = 1 << 9;
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
        &[only] if inside.len() == 1 => in_pieces(schedule, block, only, lanes),
        &[only] => drop(attempt(schedule, |schedule| schedule.parallel(only))),
        [_, ..] => together(schedule, block, &loops),
        [] => {}
    }
}

/// Operations of a block in all steps of the loops around it.
pub(crate) fn work(schedule: &mut Schedule, block: Block) -> i64 {
    let Ok(loops) = schedule.loops(block) else { return 0 };
    steps(schedule, &loops).saturating_mul(work_of_step(schedule, block))
}

/// Operations of a block in one step.
fn work_of_step(schedule: &Schedule, block: Block) -> i64 {
    let work = schedule.work(block);
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let functions = count(work.functions).saturating_mul(FUNCTION);
    count(work.operations).saturating_add(functions).saturating_add(1)
}

/// The steps of loops; one whose extent is not known counts as many.
fn steps(schedule: &Schedule, loops: &[Loop]) -> i64 {
    let extents = loops.iter().map(|&each| schedule.extent(each).unwrap_or(WORK_FOR_THREADS));
    extents.fold(1, i64::saturating_mul)
}

/// As few of the outer loops as make steps enough, as one parallel loop; all that can be where there are fewer. One whose extent is not
/// known may have a single step, as a batch often has: then those inside of it have to share the work, and each step divides by their
/// extents.
fn together(schedule: &mut Schedule, block: Block, loops: &[Loop]) {
    let outer = &loops[..loops.len() - 1];
    let known = |loops: &[Loop]| -> i64 {
        let extents = loops.iter().filter_map(|&each| schedule.extent(each));
        extents.fold(1, i64::saturating_mul)
    };
    let enough = (1..=outer.len()).find(|&count| known(&outer[..count]) >= TASKS);
    for count in (1..=enough.unwrap_or(outer.len())).rev() {
        let divides = outer[1..count].iter().any(|&each| schedule.extent(each).is_none());
        let inside = steps(schedule, &loops[count..]).saturating_mul(work_of_step(schedule, block));
        if divides && inside < WORK_FOR_DIVISION {
            continue;
        }
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

/// A loop as a parallel one over pieces of whole vectors; of an extent that is not known, each has enough to do for a thread, and the
/// rest is behind. Where one vector has that much to do, the steps are the pieces.
fn in_pieces(schedule: &mut Schedule, block: Block, only: Loop, lanes: i64) {
    let extent = schedule.extent(only);
    if let Some(count) = extent.and_then(|extent| pieces(extent, lanes)) {
        attempt(schedule, |schedule| {
            let parts = schedule.split(only, &[Some(count), None], Tail::Perfect)?;
            schedule.parallel(parts[0])
        });
        return;
    }
    let each = work_of_step(schedule, block);
    if each.saturating_mul(lanes) >= WORK_FOR_THREADS {
        attempt(schedule, |schedule| schedule.parallel(only));
    } else if extent.is_none() {
        // Rows of powers of two are whole in such a piece, or it in them.
        let vectors = (WORK_FOR_THREADS as u64 / (each * lanes) as u64 + 1).next_power_of_two();
        attempt(schedule, |schedule| {
            let parts = schedule.split(only, &[None, Some(vectors as i64 * lanes)], Tail::Cut)?;
            schedule.parallel(parts[0])
        });
    }
}

/// How many pieces of whole vectors a loop is cut into: the most up to [`TASKS`], or of any length where none are whole.
fn pieces(extent: i64, lanes: i64) -> Option<i64> {
    let divides = |count: &i64| extent % count == 0;
    let is_whole = |count: &i64| (extent / count) % lanes == 0;
    let counts = || (2..=TASKS).rev().filter(divides);
    counts().find(is_whole).or_else(|| counts().next())
}
