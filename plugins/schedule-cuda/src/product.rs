//! Products of two matrices, in tiles that a block of threads loads together.
//!
//! ```ir
//! for %i … { for %j … { for %r … {              for %i_0 … thread "blockIdx.y" { for %j_0 … thread "blockIdx.x" {
//!   block "acc" … } } }                           for %r_0 … {
//! for %i … { for %j … { block "out" … } }   =>      … threads { block "a_shared" … }  … threads { block "b_shared" … }
//!                                                   … threads { for %r_1 in 0..16 { 4 × 4 sums } } }
//!                                                 … threads { block "out" … } } }
//! ```
//!
//! A block of threads computes 64 by 64 sums, each thread 4 by 4 of them in its registers. Of both operands it copies what 16 steps
//! of the sum need to where all of its threads read it, so that each element is loaded once for 64 products. Neighbouring threads
//! load neighbouring elements of a row. What follows the sum is done to a tile while it is there.

use tenon_plugin_api::rule;
use tenon_schedule::{Axis, Block, Loop, Memory, Result, Schedule, Tail, Task};

use crate::programs::{inline_all, is_cuda, not_this};

/// Threads along each side of a tile.
const SIDE: i64 = 16;
/// Sums of a thread along each side.
const OWN: i64 = 4;
/// Steps of the sum for which a block loads its operands at once.
const DEPTH: i64 = 16;

/// Tiles of both operands in shared memory.
#[rule(schedule, key = "any", benefit = 3)]
fn product(task: &mut Task) -> Result<()> {
    if !is_cuda(task) {
        return not_this("it is for another device");
    }
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() {
        return not_this("a statement is in no block");
    }
    inline_all(schedule);
    let (sum, out) = sum_and_result(schedule)?;
    let operands = operands(schedule, sum)?;
    let Some(sums) = schedule.written(sum) else { return not_this("there are several sums") };
    let copies = operands
        .iter()
        .map(|operand| {
            let copy = schedule.cache_read(sum, &operand.name, Memory::Shared, &[])?;
            Ok((copy, operand.is_along_rows))
        })
        .collect::<Result<Vec<(Block, bool)>>>()?;
    schedule.set_scope(sum, &sums, Memory::Local)?;
    let columns = result_in_tiles(schedule, out)?;
    let steps = sums_in_tiles(schedule, sum, columns)?;
    for (copy, is_along_rows) in copies {
        load_together(schedule, copy, steps, is_along_rows)?;
    }
    bind_blocks(schedule, out)?;
    // Each sum is set to zero by the thread that adds to it.
    schedule.decompose_reduction(sum, steps).map(drop)
}

/// The reduction, and the block that writes what becomes of it; there is nothing else.
fn sum_and_result(schedule: &mut Schedule) -> Result<(Block, Block)> {
    let blocks = schedule.all_blocks();
    let &[sum, out] = blocks.as_slice() else {
        return not_this("it is not a sum and what becomes of it");
    };
    let is_one = schedule.is_reduction(sum)
        && schedule.has_init(sum)
        && schedule.writes_result(out)
        && !schedule.is_reduction(out)
        && schedule.loops(sum)?.len() == 3
        && schedule.loops(out)?.len() == 2;
    if is_one { Ok((sum, out)) } else { not_this("it is no sum over two axes") }
}

/// A matrix that is multiplied.
struct Operand {
    name: String,
    /// Whether the sum goes along its rows, rather than from row to row.
    is_along_rows: bool,
}

/// The two matrices, one of which moves with the rows of the result, one with its columns, and both with the sum.
fn operands(schedule: &mut Schedule, sum: Block) -> Result<Vec<Operand>> {
    let names = schedule.reads(sum);
    let mut moved = Vec::new();
    for each in schedule.loops(sum)? {
        let strides = schedule.strides(each).into_iter().filter(|stride| !stride.is_written);
        moved.push(strides.map(|stride| stride.elements).collect::<Vec<Option<i64>>>());
    }
    let (&[a, b], &[c, d], &[e, f]) = (&*moved[0], &*moved[1], &*moved[2]) else {
        return not_this("it is no product of two");
    };
    let moves = |elements: Option<i64>| elements != Some(0);
    let is_product = moves(a) != moves(b)
        && moves(c) != moves(d)
        && moves(a) == moves(d)
        && moves(e)
        && moves(f);
    if !is_product || names.len() != 2 {
        return not_this("it is no product of two matrices");
    }
    let operand = |(name, elements)| Operand { name, is_along_rows: elements == Some(1) };
    Ok(names.into_iter().zip([e, f]).map(operand).collect())
}

/// Cuts the result into tiles; the loop over those in a row.
fn result_in_tiles(schedule: &mut Schedule, out: Block) -> Result<Loop> {
    let loops = schedule.loops(out)?;
    let tile = [None, Some(SIDE), Some(OWN)];
    let rows = schedule.split(loops[0], &tile, Tail::Guard)?;
    let columns = schedule.split(loops[1], &tile, Tail::Guard)?;
    schedule.reorder(&[rows[0], columns[0], rows[1], columns[1], rows[2], columns[2]])?;
    schedule.bind(rows[1], Axis::ThreadY)?;
    schedule.bind(columns[1], Axis::ThreadX)?;
    Ok(columns[0])
}

/// Computes the sums of a tile in its place, some steps at a time; the loop over these times.
fn sums_in_tiles(schedule: &mut Schedule, sum: Block, columns: Loop) -> Result<Loop> {
    schedule.compute_at(sum, columns)?;
    let loops = schedule.loops(sum)?;
    let &[_, _, row, column, step] = loops.as_slice() else {
        return not_this("a side of it is one element");
    };
    let tile = [Some(SIDE), Some(OWN)];
    let rows = schedule.split(row, &tile, Tail::Guard)?;
    let columns = schedule.split(column, &tile, Tail::Guard)?;
    let steps = schedule.split(step, &[None, Some(DEPTH)], Tail::Guard)?;
    schedule.reorder(&[steps[0], rows[0], columns[0], steps[1], rows[1], columns[1]])?;
    schedule.bind(rows[0], Axis::ThreadY)?;
    schedule.bind(columns[0], Axis::ThreadX)?;
    Ok(steps[0])
}

/// Has all threads of a block copy what a step needs of an operand, neighbours along its rows.
fn load_together(
    schedule: &mut Schedule,
    copy: Block,
    steps: Loop,
    is_along_rows: bool,
) -> Result<()> {
    schedule.compute_at(copy, steps)?;
    let loops = schedule.loops(copy)?;
    let &[_, _, _, row, column] = loops.as_slice() else {
        return not_this("a side of it is one element");
    };
    // As much as the sums of a tile read, whatever there is of it.
    let (along, across) = ([Some(DEPTH / SIDE), Some(SIDE)], [Some(OWN), Some(SIDE)]);
    let [high, wide] = if is_along_rows { [across, along] } else { [along, across] };
    let rows = schedule.split(row, &high, Tail::Guard)?;
    let columns = schedule.split(column, &wide, Tail::Guard)?;
    schedule.reorder(&[rows[1], columns[1], rows[0], columns[0]])?;
    schedule.bind(rows[1], Axis::ThreadY)?;
    schedule.bind(columns[1], Axis::ThreadX)
}

/// Gives each tile to a block of threads.
fn bind_blocks(schedule: &mut Schedule, out: Block) -> Result<()> {
    let loops = schedule.loops(out)?;
    schedule.bind(loops[0], Axis::BlockY)?;
    schedule.bind(loops[1], Axis::BlockX)
}
