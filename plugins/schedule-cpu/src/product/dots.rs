//! Sums of products in vectors along the sum.
//!
//! ```ir
//! for %i … { for %j … { for %r … {               for %r_0 … { for %i … { for %j … { for %l in 0..16 vectorized {
//!   block "acc" … } } }                    =>      block "acc_rf" … } } } }                      a part of the sum in each lane
//!                                                for %h in 0..2 { … for %l in 0..8 vectorized { block "acc_rf2" … } }
//!                                                and so on, down to one
//! ```

use tenon_schedule::{Block, Loop, Result, Schedule, Tail};

use super::no_product;

/// Computes a sum in a loop over tiles of its results, a part of it in each lane; the parts are added by halves.
pub(super) fn in_lanes(schedule: &mut Schedule, sum: Block, at: Loop, lanes: i64) -> Result<()> {
    let mut stages = Vec::new();
    let mut rest = sum;
    let depth = last(schedule, rest)?;
    let mut parts = schedule.split(depth, &[None, Some(lanes)], Tail::Perfect)?;
    let mut width = lanes;
    loop {
        let [stage, behind] = schedule.rfactor(parts[1], -1)?;
        stages.push(stage);
        rest = behind;
        if width <= 2 {
            break;
        }
        width /= 2;
        let halves = last(schedule, rest)?;
        parts = schedule.split(halves, &[Some(2), None], Tail::Perfect)?;
    }
    schedule.compute_at(rest, at)?;
    for &stage in stages.iter().rev() {
        schedule.compute_at(stage, at)?;
    }
    for (number, &stage) in stages.iter().enumerate() {
        written_out(schedule, stage, true, number > 0)?;
    }
    written_out(schedule, rest, false, true)
}

/// Makes the sum go over whole vectors, in operands that are copied with zeros behind their rows; the blocks that copy.
pub(super) fn whole_vectors(schedule: &mut Schedule, sum: Block, lanes: i64) -> Result<Vec<Block>> {
    let depth = last(schedule, sum)?;
    if schedule.extent(depth).is_some_and(|steps| steps % lanes == 0) {
        return Ok(Vec::new());
    }
    let mut multiples = vec![1; schedule.loops(sum)?.len() - 1];
    multiples.push(lanes);
    schedule.pad_einsum(sum, &multiples)
}

fn last(schedule: &mut Schedule, block: Block) -> Result<Loop> {
    schedule.loops(block)?.last().copied().map_or_else(no_product, Ok)
}

/// Writes out the loops over the results of a tile, with the lanes innermost; the sum's own where it is short.
fn written_out(
    schedule: &mut Schedule,
    block: Block,
    has_lanes: bool,
    is_short: bool,
) -> Result<()> {
    let own = schedule.own_loops(block)?;
    let (depth, mut kept) = schedule.reduced_and_kept(block, &own);
    let mut lanes = None;
    if has_lanes {
        let is_lane = |each: &Loop| {
            let mut stores = schedule.strides(*each).into_iter().filter(|stride| stride.is_store);
            stores.all(|stride| stride.elements == Some(1))
        };
        let Some(at) = kept.iter().rposition(is_lane) else { return no_product() };
        lanes = Some(kept.remove(at));
    }
    let Some(&first) = depth.first() else { return no_product() };
    let order: Vec<Loop> = depth.iter().chain(&kept).copied().chain(lanes).collect();
    schedule.reorder(&order)?;
    let start = schedule.decompose_reduction(block, first)?;
    let mut of_start = schedule.own_loops(start)?;
    if has_lanes && let Some(lanes) = of_start.pop() {
        schedule.vectorize(lanes)?;
    }
    if let Some(lanes) = lanes {
        schedule.vectorize(lanes)?;
    }
    for each in of_start.into_iter().chain(kept) {
        schedule.unroll(each)?;
    }
    if is_short { depth.into_iter().try_for_each(|each| schedule.unroll(each)) } else { Ok(()) }
}
