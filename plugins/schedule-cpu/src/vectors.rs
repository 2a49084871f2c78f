//! Loops over neighbouring elements, in vectors.

use tenon_schedule::{Block, Loop, Refusal, Result, Schedule, Tail};

use crate::attempt;
use crate::windows::without_borders;

/// A loop of fewer steps has no vector.
const MIN_STEPS: i64 = 4;
/// Operations for each read of elements that lie apart, which costs as much.
const WORK_PER_GATHER: usize = 12;
/// Bits of an element, and of a vector, from which on loads and stores leave lanes out: those of AVX, of all elements with AVX-512.
const LONG: i64 = 32;
const MASKED: i64 = 256;

/// Makes one loop of the loops around a block that go through memory as one would, so that rows too short for vectors become long
/// ones.
pub(crate) fn join_rows(schedule: &mut Schedule, block: Block) {
    let Ok(mut loops) = schedule.own_loops(block) else { return };
    while let [.., outer, inner] = loops.as_slice()
        && let (outer, inner) = (*outer, *inner)
    {
        let is_reduced = schedule.is_reduced(block, outer);
        let is_plain = [outer, inner]
            .into_iter()
            .all(|each| schedule.is_serial(each) && schedule.is_reduced(block, each) == is_reduced);
        if !is_plain || !schedule.are_one_row(outer, inner) {
            loops.pop();
            continue;
        }
        let Ok(joined) = schedule.fuse(&[outer, inner]) else {
            loops.pop();
            continue;
        };
        loops.truncate(loops.len() - 2);
        loops.push(joined);
    }
}

/// Runs the innermost loop of a block in vectors, where its elements lie side by side; of a loop whose extent is not known the part
/// that fills them.
pub(crate) fn vectorize(schedule: &mut Schedule, block: Block, lanes: i64) {
    let Ok(loops) = schedule.own_loops(block) else { return };
    let Some(&inner) = loops.last() else { return with_what_it_reads(schedule, block, lanes) };
    if let Some([first, end]) = schedule.interior(inner)
        && schedule.extent(inner).is_some_and(|extent| (first, end) != (0, extent))
        && end - first >= lanes.max(MIN_STEPS)
        && schedule.is_serial(inner)
        && let Ok(parts) = without_borders(schedule, inner)
    {
        for part in parts {
            if let Ok(blocks) = schedule.children(part)
                && let &[block] = blocks.as_slice()
            {
                vectorize(schedule, block, lanes);
            }
        }
        return;
    }
    if !schedule.is_serial(inner) {
        return;
    }
    if !is_worth_it(schedule, block, inner) {
        attempt(schedule, |schedule| in_blocks(schedule, block, inner, lanes));
        return;
    }
    match schedule.extent(inner) {
        Some(extent) if extent >= MIN_STEPS => drop(schedule.vectorize(inner)),
        Some(_) => drop(schedule.unroll(inner)),
        None => drop(attempt(schedule, |schedule| {
            let parts = schedule.split(inner, &[None, Some(lanes)], Tail::Cut)?;
            schedule.vectorize(parts[1])
        })),
    }
}

/// Runs the innermost loop around a result and what is computed for each of its elements in vectors, where its extent is not known:
/// the passes behind see to those that have a number.
fn with_what_it_reads(schedule: &mut Schedule, result: Block, lanes: i64) {
    let Ok(loops) = schedule.loops(result) else { return };
    let Some(&inner) = loops.last() else { return };
    let is_open = schedule.extent(inner).is_none() && schedule.is_serial(inner);
    if is_open && schedule.writes_result(result) && is_worth_it(schedule, result, inner) {
        attempt(schedule, |schedule| {
            let parts = schedule.split(inner, &[None, Some(lanes)], Tail::Cut)?;
            schedule.vectorize(parts[1])
        });
    }
}

/// Runs a loop whose elements lie side by side as long as a vector is, as the channels of a layout in blocks.
fn in_blocks(schedule: &mut Schedule, block: Block, inner: Loop, lanes: i64) -> Result<()> {
    let parts = schedule.split(inner, &[None, Some(lanes)], Tail::Perfect)?;
    match is_worth_it(schedule, block, parts[1]) {
        true => schedule.vectorize(parts[1]),
        false => Err(Refusal::new("the elements do not lie side by side")),
    }
}

fn is_worth_it(schedule: &Schedule, block: Block, inner: Loop) -> bool {
    if schedule.is_reduced(block, inner) || schedule.has_uneven_loops(block) {
        return false;
    }
    let strides = schedule.strides(inner);
    let is_beside = |elements: Option<i64>| elements == Some(1);
    // Every other element takes two loads and a shuffle.
    let gathers = strides.iter().filter(|each| !matches!(each.elements, Some(0..=2))).count();
    let work = schedule.work(block);
    strides.iter().all(|each| !each.is_store || is_beside(each.elements))
        && work.operations + WORK_PER_GATHER * work.functions >= WORK_PER_GATHER * gathers
}

/// Whether all that a block reads and writes has loads and stores of vectors that leave lanes out.
pub(crate) fn has_masks(schedule: &Schedule, block: Block, lanes: i64) -> bool {
    schedule.bits_read(block) >= LONG && schedule.bits(block) * lanes >= MASKED
}

/// Writes the loops of a tile out, the last in vectors of so many lanes.
pub(crate) fn in_registers(schedule: &mut Schedule, loops: &[Loop], lanes: i64) -> Result<()> {
    let Some((&last, others)) = loops.split_last() else { return Ok(()) };
    for &each in others {
        schedule.unroll(each)?;
    }
    match schedule.extent(last) {
        Some(extent) if extent > lanes && extent % lanes == 0 => {
            let parts = schedule.split(last, &[None, Some(lanes)], Tail::Perfect)?;
            schedule.unroll(parts[0])?;
            schedule.vectorize(parts[1])
        }
        _ => schedule.vectorize(last),
    }
}
