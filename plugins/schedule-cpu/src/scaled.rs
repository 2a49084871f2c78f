//! Products of one row with a matrix whose blocks have scales: a sum of sums, each times a scale.
//!
//! ```ir
//! for %g … { for %j … { for %e … { for %h … {           for %j_0 … parallel {
//!   block "parts" … } } } }                               for %j_1 in 0..64 vectorized { block "acc_init" … }
//! for %j … { for %g … {                            =>     for %g … {
//!   block "acc" … } }                                       for %j_1 … { block "parts_init" … }
//! for %j … { block "out" … }                                for %e … { for %h … unrolled { for %j_1 … { block "parts" … } } }
//!                                                           for %j_1 … { block "acc" … } }
//!                                                         for %j_1 … { block "out" … } }
//! ```
//!
//! What is read of the matrix takes arithmetic to unpack, so a step of the inner sum does no more than that: scales come once a block.
//! The inner sums stay in registers, the outer ones near. Columns that fill no tile have one of their own.

use tenon_plugin_api::ir::STREAMS;
use tenon_plugin_api::rule;
use tenon_schedule::{Block, Loop, Refusal, Result, Schedule, Tail, Task};

use crate::product::on_threads;
use crate::threads::{self, WORK_FOR_THREADS};
use crate::vectors::in_registers;
use crate::{finish, inlining};

/// Vectors of sums: enough for the multiply-add units to be busy.
const VECTORS: i64 = 8;

/// Sums of scaled sums in tiles of columns.
#[rule(schedule, key = "any", benefit = 4)]
fn scaled(task: &mut Task) -> Result<()> {
    if !task.is_for_cpu() {
        return no_sums();
    }
    let machine = task.machine();
    let lanes = machine.lanes();
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() {
        return no_sums();
    }
    inlining::inline_all(schedule);
    let blocks = schedule.all_blocks();
    let [before @ .., parts, acc, out] = blocks.as_slice() else { return no_sums() };
    let whole = Piece { parts: *parts, acc: *acc, out: *out };
    whole.check(schedule)?;
    let is_long = threads::work(schedule, whole.parts) >= WORK_FOR_THREADS;
    let threads = if is_long { machine.threads } else { 1 };
    for (piece, size) in whole.of_columns(schedule, lanes)? {
        piece.in_tiles(schedule, size, lanes, threads)?;
    }
    for &block in before {
        finish::alone(schedule, block, lanes, machine.threads > 1);
    }
    task.because(format!(
        "scales come once a block of the sum; {VECTORS} vectors of {lanes} sums stay in registers"
    ));
    Ok(())
}

/// The sums of blocks, the sums of these on their scales, and what becomes of them.
#[derive(Clone, Copy)]
struct Piece {
    parts: Block,
    acc: Block,
    out: Block,
}

impl Piece {
    /// That sums are as they are said to be, of one row.
    fn check(self, schedule: &mut Schedule) -> Result<()> {
        let Self { parts, acc, out } = self;
        let is_sum = |block| schedule.is_reduction(block) && schedule.has_init(block);
        if !is_sum(parts) || !is_sum(acc) || schedule.is_reduction(out) {
            return no_sums();
        }
        if schedule.consumers(parts)? != [acc]
            || schedule.consumers(acc)? != [out]
            || !schedule.writes_result(out)
        {
            return no_sums();
        }
        let loops = schedule.loops(out)?;
        let Some((&column, rows)) = loops.split_last() else { return no_sums() };
        let of_acc = schedule.loops(acc)?;
        let kept = schedule.reduced_and_kept(acc, &of_acc).1.len();
        // The inner sum is one for each step of the outer one.
        let of_parts = schedule.loops(parts)?;
        let is_of_steps = schedule.reduced_and_kept(parts, &of_parts).1.len() == kept + 1;
        let is_one = |&each: &Loop| schedule.extent(each) == Some(1);
        let is_known = schedule.extent(column).is_some_and(|columns| columns > 1);
        let is_row = rows.iter().all(is_one)
            && kept == loops.len()
            && of_acc.len() == kept + 1
            && is_of_steps;
        if is_row && is_known { Ok(()) } else { no_sums() }
    }

    /// Columns in whole tiles, then those in whole vectors, then the others, with how many of them a tile has.
    fn of_columns(self, schedule: &mut Schedule, lanes: i64) -> Result<Vec<(Self, i64)>> {
        let Some(&column) = schedule.loops(self.out)?.last() else { return no_sums() };
        let Some(columns) = schedule.extent(column) else { return no_sums() };
        let tile = VECTORS * lanes;
        let rest = columns % tile;
        let counts = [columns - rest, rest / lanes * lanes, rest % lanes];
        let sizes = [tile, rest / lanes * lanes, rest % lanes];
        let lengths: Vec<(i64, i64)> =
            counts.into_iter().zip(sizes).filter(|&(count, _)| count > 0).collect();
        let cut = |schedule: &mut Schedule, block: Block| -> Result<Vec<Block>> {
            let loops = schedule.loops(block)?;
            let Some(at) = loops.iter().position(|&each| schedule.extent(each) == Some(columns))
            else {
                return no_sums();
            };
            let mut order = loops[..=at].to_vec();
            order.rotate_right(1);
            schedule.reorder(&order)?;
            let [firsts @ .., _] = lengths.as_slice() else { return no_sums() };
            if firsts.is_empty() {
                return Ok(vec![block]);
            }
            let firsts: Vec<Option<i64>> = firsts.iter().map(|&(count, _)| Some(count)).collect();
            let pieces = schedule.partition(loops[at], &firsts)?;
            let blocks = pieces.into_iter().map(|piece| only_child(schedule, piece));
            blocks.collect()
        };
        let [parts, acc, out] = [self.parts, self.acc, self.out].map(|block| cut(schedule, block));
        let (parts, acc, out) = (parts?, acc?, out?);
        let pieces = parts.into_iter().zip(acc).zip(out);
        let pieces = pieces.map(|((parts, acc), out)| Self { parts, acc, out });
        Ok(pieces.zip(lengths).map(|(piece, (_, size))| (piece, size)).collect())
    }

    /// Computes a tile of so many columns after the other.
    fn in_tiles(self, schedule: &mut Schedule, size: i64, lanes: i64, threads: i64) -> Result<()> {
        let Some(&column) = schedule.loops(self.out)?.first() else { return no_sums() };
        let [tiles, within] = schedule.split(column, &[None, Some(size)], Tail::Perfect)?[..]
        else {
            return no_sums();
        };
        let mut order = schedule.loops(self.out)?;
        order.retain(|&each| each != within);
        order.push(within);
        schedule.reorder(&order)?;
        schedule.compute_at(self.acc, tiles)?;
        let (groups, kept) = deep_and_kept(schedule, self.acc)?;
        let &[group] = groups.as_slice() else { return no_sums() };
        in_lanes(schedule, self.acc, &groups, &kept, lanes)?;
        schedule.compute_at(self.parts, group)?;
        let (deep, kept_parts) = deep_and_kept(schedule, self.parts)?;
        in_lanes(schedule, self.parts, &deep, &kept_parts, lanes)?;
        let Some((&each, in_element)) = deep.split_first() else { return no_sums() };
        schedule.annotate(each, STREAMS, true)?;
        unpacked(schedule, in_element, &kept_parts, lanes)?;
        in_registers(schedule, &kept, lanes)?;
        in_registers(schedule, &[within], lanes)?;
        if threads > 1 {
            on_threads(schedule, &[tiles], threads);
        }
        Ok(())
    }
}

/// The loops of a block over what it sums, and over what it keeps.
fn deep_and_kept(schedule: &mut Schedule, block: Block) -> Result<(Vec<Loop>, Vec<Loop>)> {
    let own = schedule.own_loops(block)?;
    Ok(schedule.reduced_and_kept(block, &own))
}

/// Lets a sum start in vectors before its loops, and those over what it keeps stand inside.
fn in_lanes(
    schedule: &mut Schedule,
    sum: Block,
    deep: &[Loop],
    kept: &[Loop],
    lanes: i64,
) -> Result<()> {
    let Some(&first) = deep.first() else { return no_sums() };
    schedule.reorder(&[deep, kept].concat())?;
    let start = schedule.decompose_reduction(sum, first)?;
    let of_start = schedule.own_loops(start)?;
    in_registers(schedule, &of_start, lanes)
}

/// Writes the loops of a step of the inner sum out: what is loaded of the matrix is unpacked at once, so that it need not be kept.
fn unpacked(schedule: &mut Schedule, in_element: &[Loop], kept: &[Loop], lanes: i64) -> Result<()> {
    if let Some((&columns, rows)) = kept.split_last() {
        rows.iter().try_for_each(|&each| schedule.unroll(each))?;
        if schedule.extent(columns).is_some_and(|extent| extent % lanes == 0) {
            let parts = schedule.split(columns, &[None, Some(lanes)], Tail::Perfect)?;
            schedule.reorder(&[&parts[..1], in_element, &parts[1..]].concat())?;
            schedule.unroll(parts[0])?;
            schedule.vectorize(parts[1])?;
        } else {
            schedule.vectorize(columns)?;
        }
    }
    in_element.iter().try_for_each(|&each| schedule.unroll(each))
}

fn only_child(schedule: &mut Schedule, each: Loop) -> Result<Block> {
    match schedule.children(each)?.as_slice() {
        &[block] => Ok(block),
        _ => no_sums(),
    }
}

fn no_sums<T>() -> Result<T> {
    Err(Refusal::new("the program is no sum of sums on scales"))
}
