//! What is computed inside the loops of its readers, as much as one step reads.
//!
//! ```ir
//! for %i … { for %r … { block "sum" … } }               for %i … {
//! for %i … { for %j … { block "out" … } }        =>       for %r … { block "sum" … }
//!                                                         for %j … { block "out" … } }
//! ```
//!
//! Of the loops around all readers, the row goes to the last before which each says what is read, and steps read little in common: so
//! next to nothing is computed twice.
//! A sum that runs in vectors over what it keeps, as a product with a matrix that lies row by row, is given some vectors of
//! sums at a time, which stay in registers.

use tenon_schedule::{Block, Loop, Result, Schedule, Tail};

use crate::attempt;
use crate::vectors::has_masks;

/// Vectors of sums that are computed at once.
const VECTORS: i64 = 4;

/// Moves each block into the loops of its readers, the last first.
pub(crate) fn compute_in_rows(schedule: &mut Schedule, lanes: i64) {
    let mut blocks = schedule.all_blocks();
    blocks.reverse();
    for block in blocks {
        if !schedule.writes_result(block) {
            attempt(schedule, |schedule| place(schedule, block, lanes));
        }
        attempt(schedule, |schedule| start_before(schedule, block));
    }
}

/// Sets what a reduction starts from before its loops, rather than in their first steps.
fn start_before(schedule: &mut Schedule, block: Block) -> Result<()> {
    let loops = schedule.loops(block)?;
    let first = loops.into_iter().find(|&each| schedule.is_reduced(block, each));
    match first {
        Some(first) if schedule.has_init(block) => {
            schedule.decompose_reduction(block, first).map(drop)
        }
        _ => Ok(()),
    }
}

fn place(schedule: &mut Schedule, block: Block, lanes: i64) -> Result<()> {
    let mut said = common_loops(schedule, block)?;
    let consumers = schedule.consumers(block)?;
    let ends = said.iter().position(|&each| {
        let is_reduced = consumers.iter().any(|&consumer| schedule.is_reduced(consumer, each));
        !schedule.says_what_is_read(each, block)
            || is_reduced && schedule.overlap(each, block) > 1.0
    });
    said.truncate(ends.unwrap_or(said.len()));
    // Loops whose steps read what others read as well come last: what they read is computed before them.
    let (apart, windows): (Vec<Loop>, Vec<Loop>) =
        said.iter().partition(|&&each| schedule.overlap(each, block) <= 1.0);
    let order = [apart.as_slice(), windows.as_slice()].concat();
    if order == said || attempt(schedule, |schedule| schedule.reorder(&order)) {
        said = apart;
    } else {
        let ends = said.iter().position(|each| windows.contains(each));
        said.truncate(ends.unwrap_or(said.len()));
    }
    let Some(&last) = said.last() else { return Ok(()) };
    if !schedule.is_reduction(block) || !runs_over_what_it_keeps(schedule, block)? {
        return schedule.compute_at(block, last);
    }
    match schedule.extent(last) {
        // Whole rows of sums, where they are short.
        Some(extent) if extent <= VECTORS * lanes => match said.len() {
            1 => {}
            count => schedule.compute_at(block, said[count - 2])?,
        },
        Some(extent) => {
            let (width, tail) = tile(extent, lanes);
            let parts = schedule.split(last, &[None, Some(width)], tail)?;
            schedule.compute_at(block, parts[0])?;
        }
        // They may be short: one vector, which leaves lanes out.
        None if has_masks(schedule, block, lanes) => {
            let parts = schedule.split(last, &[None, Some(lanes)], Tail::Mask)?;
            schedule.compute_at(block, parts[0])?;
        }
        None => return schedule.compute_at(block, last),
    }
    sum_in_vectors(schedule, block)
}

/// The loops around all readers of a block, outermost first.
fn common_loops(schedule: &mut Schedule, block: Block) -> Result<Vec<Loop>> {
    let mut common: Option<Vec<Loop>> = None;
    for consumer in schedule.consumers(block)? {
        let loops = schedule.loops(consumer)?;
        common = Some(match common {
            None => loops,
            Some(common) => {
                let pairs = common.into_iter().zip(loops);
                pairs.take_while(|(a, b)| a == b).map(|(each, _)| each).collect()
            }
        });
    }
    Ok(common.unwrap_or_default())
}

/// Whether a loop over what a reduction keeps goes through memory side by side.
fn runs_over_what_it_keeps(schedule: &mut Schedule, block: Block) -> Result<bool> {
    let is_beside = |schedule: &Schedule, each: Loop| {
        let strides = schedule.strides(each);
        let is_read = strides.iter().any(|stride| !stride.is_store && stride.elements == Some(1));
        let is_near = strides.iter().all(|stride| match stride.is_store {
            true => stride.elements == Some(1),
            false => matches!(stride.elements, Some(0 | 1)),
        });
        is_read && is_near
    };
    let loops = schedule.loops(block)?;
    Ok(loops.into_iter().any(|each| {
        !schedule.is_reduced(block, each)
            && schedule.extent(each) != Some(1)
            && is_beside(schedule, each)
    }))
}

/// The width of a tile of a row of sums: one that divides the row where there is one; otherwise the last tile leaves lanes out.
fn tile(extent: i64, lanes: i64) -> (i64, Tail) {
    let whole = (1..=VECTORS).rev().map(|vectors| vectors * lanes);
    match whole.clone().find(|width| extent % width == 0) {
        Some(width) => (width, Tail::Perfect),
        None => (VECTORS * lanes, Tail::Mask),
    }
}

/// The loops of a reduction with those over what it keeps inside, the innermost of them in vectors; what it starts from is set before.
fn sum_in_vectors(schedule: &mut Schedule, block: Block) -> Result<()> {
    let loops = schedule.own_loops(block)?;
    let (reduced, kept) = schedule.reduced_and_kept(block, &loops);
    let [Some(&first), Some(&lanes)] = [reduced.first(), kept.last()] else { return Ok(()) };
    let order: Vec<Loop> = [&kept[..kept.len() - 1], &reduced, &[lanes]].concat();
    schedule.reorder(&order)?;
    let init = schedule.decompose_reduction(block, first)?;
    schedule.vectorize(lanes)?;
    let inner = schedule.own_loops(init)?.last().copied();
    inner.map_or(Ok(()), |inner| schedule.vectorize(inner))
}
