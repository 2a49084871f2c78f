//! Products of bytes in tiles of rows by vectors of columns, by instructions for dot products.
//!
//! ```ir
//! for %i … { for %b … { for %l in 0..16 {              for %j_0 … { for %i_0 … {
//!   for %r … { for %s in 0..4 {                           for %i_1 … { for %b_1 … { for %l … vectorized { block "acc_init" … } } }
//!     block "acc" … } } } } }                     =>      for %r … { for %i_1 … unrolled { for %b_1 … unrolled {
//! for %i … { for %j … { block "out" … } }                   for %l … { for %s … } } with vpdpbusd } } }
//!                                                         for %i_1 … { for %j_1 … { for %l … vectorized { block "out" … } } } } }
//! ```
//!
//! The sums of a tile stay in registers over all of the depth: an instruction reads four bytes of a row, the same for all its columns,
//! and a vector of packed columns. What follows the sum is done to a tile while it is there. Of rows whose number is not known those that
//! fill tiles are computed so, and the few that are left one by one.

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::rule;
use tenon_schedule::{Block, Loop, Refusal, Result, Schedule, Tail, Task};

use crate::inlining;
use crate::product::cut_off;

/// Instructions by how many sums they have.
type BySums = &'static [(i64, &'static str)];

/// Instructions of a processor.
struct Family {
    /// What it needs for them.
    feature: &'static str,
    /// The data that they read, beside weights of bytes with a sign, or of the same dtype.
    data: DType,
    /// How many products they add.
    products: i64,
    /// Longest first.
    all: BySums,
}

const FAMILIES: [Family; 8] = [
    Family {
        feature: "avx512vnni",
        data: DType::U8,
        products: 4,
        all: &[
            (16, "x86.avx512vnni.u8i8x16x4"),
            (8, "x86.avx512vnni.u8i8x8x4"),
            (4, "x86.avx512vnni.u8i8x4x4"),
        ],
    },
    Family {
        feature: "avxvnni",
        data: DType::U8,
        products: 4,
        all: &[(8, "x86.avxvnni.u8i8x8x4"), (4, "x86.avxvnni.u8i8x4x4")],
    },
    Family { feature: "avx2", data: DType::U8, products: 4, all: &[(8, "x86.avx2.u8i8x8x4")] },
    Family { feature: "sse4.1", data: DType::U8, products: 4, all: &[(4, "x86.sse41.u8i8x4x4")] },
    Family {
        feature: "avx512bf16",
        data: DType::BF16,
        products: 2,
        all: &[(16, "x86.avx512bf16.bf16x16x2"), (8, "x86.avx512bf16.bf16x8x2")],
    },
    Family { feature: "i8mm", data: DType::U8, products: 4, all: &[(4, "aarch64.i8mm.u8i8x4x4")] },
    Family { feature: "neon", data: DType::U8, products: 4, all: &[(4, "aarch64.neon.u8i8x4x4")] },
    Family {
        feature: "dotprod",
        data: DType::I8,
        products: 4,
        all: &[(4, "aarch64.dotprod.i8x4x4")],
    },
];
/// Columns that lie together in the packed matrix.
const LANES: i64 = 16;
/// Rows of a tile at most, and vectors of sums in it: with those of columns they fill the registers.
const TILE: [i64; 2] = [6, 24];
/// The same where a vector is four of 32 registers.
const ARM_TILE: [i64; 2] = [6, 6];
/// The same where there are 16 registers and a vector is two.
const SMALL_TILE: [i64; 2] = [5, 5];
/// Steps of the loop over tiles for each thread.
const STEPS: i64 = 4;

/// Tiles of rows by vectors of 16 columns.
#[rule(schedule, key = "any", benefit = 8)]
fn byte_dots(task: &mut Task) -> Result<()> {
    let threads = task.machine().threads;
    let anchor = task.schedule.anchor()?;
    let Some(&last) = task.schedule.loops(anchor)?.last() else { return no_dots() };
    let Some(dots) = Dots::of(task, anchor, task.schedule.extent(last)) else { return no_dots() };
    let [high, sums] = dots.tile;
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() {
        return no_dots();
    }
    inlining::inline_all(schedule);
    let blocks = schedule.all_blocks();
    let sum = schedule.anchor()?;
    let &[first, out] = blocks.as_slice() else { return no_dots() };
    if first != sum || !schedule.has_init(sum) || schedule.consumers(sum)? != [out] {
        return no_dots();
    }
    let &[.., lanes, _, _] = schedule.loops(sum)?.as_slice() else { return no_dots() };
    if schedule.extent(lanes) != Some(LANES) {
        return no_dots();
    }
    let loops = schedule.loops(out)?;
    let &[ref outer @ .., rows, columns] = loops.as_slice() else { return no_dots() };
    let at = outer.len();
    let Some(width) = schedule.extent(columns).filter(|width| width % LANES == 0) else {
        return no_dots();
    };
    // Where no even cut is high, rows beyond the last high tile are one of their own.
    let extent = schedule.extent(rows);
    let even = extent.map_or(1, |extent| largest_part(extent, high));
    let piece = [sum, out];
    let (tall, left) = match extent {
        Some(extent) if 2 * even > high || extent <= high => (even, None),
        _ => (high, Some(cut_off(schedule, &piece, at, high)?)),
    };
    let wide = |tall| largest_part(width / LANES, sums / tall);
    let tiles = Tiles { dots, threads, are_cut: left.is_some(), size: [tall, wide(tall)] };
    tiles.of(schedule, piece)?;
    if let Some(left) = left {
        let size = extent.map_or([1, wide(1)], |extent| [extent % high, wide(tall)]);
        Tiles { are_cut: false, size, ..tiles }.of(schedule, left)?;
    }
    let wide = wide(tall);
    task.because(format!("{tall} rows by {wide} vectors of sums stay in registers"));
    Ok(())
}

/// Tiles of some rows by some vectors, in which the sums of a piece and what becomes of them are computed.
#[derive(Clone, Copy)]
struct Tiles {
    dots: Dots,
    threads: i64,
    /// Whether the outermost loop goes over tiles of rows already.
    are_cut: bool,
    size: [i64; 2],
}

impl Tiles {
    fn of(self, schedule: &mut Schedule, [sum, out]: [Block; 2]) -> Result<()> {
        let [tall, wide] = self.size;
        let loops = schedule.loops(out)?;
        let [outer @ .., rows, columns] = loops.as_slice() else { return no_dots() };
        let (over_rows, outer) = match (self.are_cut, outer) {
            (true, [tiles, outer @ ..]) => (vec![*tiles, *rows], outer),
            _ => (schedule.split(*rows, &[None, Some(tall)], Tail::Perfect)?, outer),
        };
        let parts = schedule.split(*columns, &[None, Some(wide), Some(LANES)], Tail::Perfect)?;
        let tile = [parts[0], over_rows[0], over_rows[1], parts[1], parts[2]];
        schedule.reorder(&[outer, &tile].concat())?;
        schedule.compute_at(sum, over_rows[0])?;
        self.dots.tile_of_sums(schedule, sum, 0)?;
        schedule.unroll(over_rows[1])?;
        schedule.unroll(parts[1])?;
        schedule.vectorize(parts[2])?;
        if self.threads > 1 {
            on_threads(schedule, outer, [parts[0], over_rows[0]], self.threads);
        }
        Ok(())
    }
}

/// The instructions of a processor for dot products of bytes, or of pairs of bf16.
#[derive(Clone, Copy)]
pub(crate) struct Dots {
    all: BySums,
    /// Rows of a tile at most, and vectors of sums in it.
    tile: [i64; 2],
}

impl Dots {
    /// Those that read what a sum reads, and add so many products.
    pub(crate) fn of(task: &Task, sum: Block, products: Option<i64>) -> Option<Self> {
        let machine = task.machine();
        let lanes = if task.is_for_cpu() { machine.lanes() } else { 0 };
        let read = task.schedule.dtypes_read(sum);
        let is_at_hand = |family: &&Family| {
            products == Some(family.products)
                && read.contains(&family.data)
                && task.has_feature(family.feature)
        };
        FAMILIES.iter().filter(is_at_hand).find_map(|family| {
            // Those for longer vectors than the target wants are left out.
            let first = family.all.iter().position(|&(sums, _)| sums <= lanes)?;
            let all = &family.all[first..];
            let tile = match all[0].0 {
                LANES => TILE,
                4 if machine.registers >= 32 => ARM_TILE,
                _ => SMALL_TILE,
            };
            Some(Self { all, tile })
        })
    }

    /// Whether vectors of so many sums have an instruction.
    pub(crate) fn have(self, lanes: i64) -> bool {
        self.all.iter().any(|&(sums, _)| sums == lanes)
    }

    /// The loops of a tile's sums: those of the depth outside, those of the tile written out inside, and they start before. The
    /// innermost of the depth is written out as well, where it has some steps and no more than `taps`.
    pub(crate) fn tile_of_sums(self, schedule: &mut Schedule, sum: Block, taps: i64) -> Result<()> {
        let mut own = schedule.own_loops(sum)?;
        own.retain(|&each| schedule.moves(sum, each));
        let (depth, kept) = schedule.reduced_and_kept(sum, &own);
        let (Some((&four, depth)), Some((&lanes, tile))) = (depth.split_last(), kept.split_last())
        else {
            return no_dots();
        };
        let Some(&first) = depth.first() else { return no_dots() };
        let order = [depth, tile, &[lanes, four]].concat();
        schedule.reorder(&order)?;
        let start = schedule.decompose_reduction(sum, first)?;
        let of_start = schedule.own_loops(start)?;
        if let Some((&lanes, tile)) = of_start.split_last() {
            schedule.vectorize(lanes)?;
            tile.iter().try_for_each(|&each| schedule.unroll(each))?;
        }
        tile.iter().try_for_each(|&each| schedule.unroll(each))?;
        if let Some((&last, [_, ..])) = depth.split_last()
            && schedule.extent(last).is_some_and(|steps| (2..=taps).contains(&steps))
        {
            schedule.unroll(last)?;
        }
        self.instead_of(schedule, lanes)
    }

    /// Computes a loop of sums by instructions: by one, or by several of the longest.
    fn instead_of(self, schedule: &mut Schedule, lanes: Loop) -> Result<()> {
        let extent = schedule.extent(lanes);
        if let Some(&(_, one)) = self.all.iter().find(|&&(sums, _)| Some(sums) == extent) {
            return schedule.tensorize(lanes, one);
        }
        let Some(&(sums, longest)) = self.all.first() else { return no_dots() };
        let parts = schedule.split(lanes, &[None, Some(sums)], Tail::Perfect)?;
        schedule.unroll(parts[0])?;
        schedule.tensorize(parts[1], longest)
    }
}

/// Shares the loop over columns out among threads, with those outside of it where they have more than a step, and that over tiles of
/// rows where there are too few steps.
fn on_threads(schedule: &mut Schedule, outer: &[Loop], tiles: [Loop; 2], threads: i64) {
    let steps = |each: &Loop| schedule.extent(*each).unwrap_or(1);
    let outer = if outer.iter().all(|each| steps(each) == 1) { &[] } else { outer };
    let is_enough = outer.iter().chain([&tiles[0]]).map(steps).product::<i64>() >= STEPS * threads;
    shared(schedule, &[outer, if is_enough { &tiles[..1] } else { &tiles[..] }].concat());
}

/// Shares nested loops out among threads, as one.
pub(crate) fn shared(schedule: &mut Schedule, loops: &[Loop]) {
    crate::attempt(schedule, |schedule| {
        let joined = if let &[only] = loops { only } else { schedule.fuse(loops)? };
        schedule.parallel(joined)
    });
}

/// Computes rows of a sum and its result one by one.
pub(crate) fn one_by_one(
    schedule: &mut Schedule,
    piece: [Block; 2],
    dots: Dots,
    threads: i64,
) -> Result<()> {
    let Some(&columns) = schedule.loops(piece[1])?.last() else { return no_dots() };
    let Some(width) = schedule.extent(columns) else { return no_dots() };
    let [_, sums] = dots.tile;
    let size = [1, largest_part(width / LANES, sums)];
    Tiles { dots, threads, are_cut: false, size }.of(schedule, piece)
}

/// The largest number up to `most` that divides a number.
pub(crate) fn largest_part(whole: i64, most: i64) -> i64 {
    (1..=most.max(1)).rev().find(|part| whole % part == 0).unwrap_or(1)
}

fn no_dots<T>() -> Result<T> {
    Err(Refusal::new("the program is no product of bytes packed by quads"))
}
