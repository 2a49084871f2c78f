//! Products that are packed for dot products, in the tile registers of AMX.
//!
//! ```ir
//! for %i … { for %b … { for %l in 0..16 {              for %b_0 … parallel {
//!   for %r … { for %s in 0..2 {                           for %i … { for %b_1 in 0..2 { for %l … vectorized { block "acc_init" … } } }
//!     block "acc" … } } } } }                     =>      for %r_0 … {
//! for %i … { for %j … { block "out" … } }                   for %i … { for %b_1 … { for %l … { for %r_1 … { for %s … } } } } with amx
//!                                                         for %i … { for %b_1 in 0..2 { for %l … vectorized { block "out" … } } } }
//! ```
//!
//! What 32 columns need of the right matrix is walked over in parts that stay in the first cache while all rows use them; rows come from
//! the second one. Sums are kept for so many rows as leave room for both there, and what follows is done to them then. What the left
//! matrix is made of is computed before. Of rows whose number is not known tiles take as many as they can, and the last three go one by one
//! without them.
//!
//! On a core of an Emerald Rapids that reaches 2,170 G operations a second in tile registers, 128 by 768 by 3072 in parts of 12 tiles of the
//! sum reach 1,080 where tiles are configured once for a part, 830 where that is done for each 32 rows, and 660 without parts.

use tenon_plugin_api::rule;
use tenon_schedule::{Block, Refusal, Result, Schedule, Tail, Task};

use crate::byte_dots::{self, Dots, largest_part};
use crate::intrinsics::ROWS;
use crate::product::cut_off;
use crate::{finish, inlining};

/// Intrinsics of 32 columns and of 16 by how many products lie side by side, and the feature that they need.
const INTRINSICS: [(&str, i64, [&str; 2]); 2] = [
    ("amx-bf16", 2, ["x86.amx_bf16.bf16x512x32", "x86.amx_bf16.bf16x512x16"]),
    ("amx-int8", 4, ["x86.amx_int8.u8i8x512x32", "x86.amx_int8.u8i8x512x16"]),
];
/// Columns that lie together in the packed matrix, and blocks of them in tiles.
const LANES: i64 = 16;
const WIDE: i64 = 2;
/// Steps of the sum of a tile.
const DEEP: i64 = 16;
/// Steps of the sum at a time: of 32 columns these are 24 KiB, half of the first cache.
const PART: i64 = 192;

/// A sum and its result.
type Piece = [Block; 2];

/// Rows at once where their number is not known: each piece reads the right matrix again, and the last one goes without tiles.
const OPEN_ROWS: [i64; 3] = [64, 16, 4];

/// Products in tile registers.
#[rule(schedule, key = "any", benefit = 9)]
fn tile_dots(task: &mut Task) -> Result<()> {
    let anchor = task.schedule.anchor()?;
    let Some(&last) = task.schedule.loops(anchor)?.last() else { return no_dots() };
    let products = task.schedule.extent(last);
    let Some(intrinsics) = intrinsics(task, products) else { return no_dots() };
    let dots = Dots::of(task, anchor, products);
    let machine = task.machine();
    let (lanes, threads) = (machine.lanes(), machine.threads);
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() {
        return no_dots();
    }
    let sum = schedule.anchor()?;
    inlining::inline_all_but(schedule, sum);
    let blocks = schedule.all_blocks();
    let [before @ .., first, out] = blocks.as_slice() else { return no_dots() };
    let (before, piece) = (before.to_vec(), [sum, *out]);
    if *first != sum || !schedule.has_init(sum) || schedule.consumers(sum)? != [*out] {
        return no_dots();
    }
    let (known, few) = known_rows(schedule, piece)?;
    for piece in known {
        let tiles = Tiles::of(schedule, piece, intrinsics, threads)?;
        for piece in tiles.pieces(schedule, piece)? {
            tiles.compute(schedule, piece)?;
        }
    }
    if let Some(few) = few {
        let Some(dots) = dots else { return no_dots() };
        byte_dots::one_by_one(schedule, few, dots, threads)?;
    }
    for block in before {
        finish::alone(schedule, block, lanes, threads > 1);
    }
    task.because("32 rows by 32 columns are summed in tiles at once");
    Ok(())
}

/// A product in pieces whose number of rows is known, and the one that is left where it is not: it has a few rows at most.
fn known_rows(schedule: &mut Schedule, piece: Piece) -> Result<(Vec<Piece>, Option<Piece>)> {
    let loops = schedule.loops(piece[1])?;
    let Some(at) = loops.len().checked_sub(2) else { return no_dots() };
    if schedule.extent(loops[at]).is_some() {
        return Ok((vec![piece], None));
    }
    let (mut known, mut rest) = (Vec::new(), piece);
    for size in OPEN_ROWS {
        let left = cut_off(schedule, &rest, at, size)?;
        known.push(rest);
        rest = left;
    }
    Ok((known, Some(rest)))
}

/// The intrinsics of a processor that add so many products side by side.
fn intrinsics(task: &Task, products: Option<i64>) -> Option<[&'static str; 2]> {
    let is_at_hand = |&&(feature, group, _): &&(&str, i64, _)| {
        products == Some(group) && task.has_feature(feature)
    };
    let found = INTRINSICS.iter().find(is_at_hand).filter(|_| task.is_for_cpu());
    found.map(|&(_, _, intrinsics)| intrinsics)
}

/// A product in tiles.
struct Tiles {
    intrinsics: [&'static str; 2],
    threads: i64,
    rows: i64,
    blocks: i64,
}

impl Tiles {
    /// Of a sum and its result, whose columns are cut into blocks.
    fn of(
        schedule: &mut Schedule,
        [sum, out]: Piece,
        intrinsics: [&'static str; 2],
        threads: i64,
    ) -> Result<Self> {
        let &[.., rows, blocks, lanes, steps, _] = schedule.loops(sum)?.as_slice() else {
            return no_dots();
        };
        let extents = [rows, blocks, lanes, steps].map(|each| schedule.extent(each));
        let [Some(rows @ 2..), Some(blocks), Some(LANES), Some(steps)] = extents else {
            return no_dots();
        };
        let loops = schedule.loops(out)?;
        let &[.., columns] = loops.as_slice() else { return no_dots() };
        if steps % DEEP != 0 || schedule.extent(columns) != Some(blocks * LANES) {
            return no_dots();
        }
        schedule.split(columns, &[None, Some(LANES)], Tail::Perfect)?;
        Ok(Self { intrinsics, threads, rows, blocks })
    }

    /// The product in pieces of rows whose sums are kept at once, and of whole pairs of blocks.
    fn pieces(&self, schedule: &mut Schedule, whole: Piece) -> Result<Vec<Piece>> {
        let mut pieces = vec![whole];
        for (extent, most, behind) in [(self.blocks, WIDE, 2), (self.rows, ROWS, 3)] {
            if extent > most {
                let size = if most == WIDE { WIDE } else { evenly(extent, most) };
                let cut = |piece| cut(schedule, piece, behind, size);
                pieces = pieces.into_iter().map(cut).collect::<Result<Vec<_>>>()?.concat();
            }
        }
        Ok(pieces)
    }

    /// Computes a piece.
    fn compute(&self, schedule: &mut Schedule, [sum, out]: Piece) -> Result<()> {
        let loops = schedule.loops(out)?;
        let &[ref outer @ .., rows, blocks, lanes] = loops.as_slice() else { return no_dots() };
        let inner = match outer.last() {
            Some(&last) => last,
            None => schedule.add_unit_loop(rows)?,
        };
        schedule.compute_at(sum, inner)?;
        let wide = schedule.extent(blocks);
        self.sums(schedule, sum, wide)?;
        schedule.unroll(blocks)?;
        schedule.vectorize(lanes)?;
        if self.threads > 1 && !outer.is_empty() {
            byte_dots::shared(schedule, outer);
        }
        Ok(())
    }

    /// The sums of some rows and of one block of columns or two.
    fn sums(&self, schedule: &mut Schedule, sum: Block, wide: Option<i64>) -> Result<()> {
        // One block of columns has no loop of its own any more.
        let own = schedule.own_loops(sum)?;
        let &[rows, ref columns @ .., steps, few] = own.as_slice() else { return no_dots() };
        let Some(depth) = schedule.extent(steps) else { return no_dots() };
        let start = schedule.decompose_reduction(sum, rows)?;
        if let &[_, ref blocks @ .., lanes] = schedule.own_loops(start)?.as_slice() {
            schedule.vectorize(lanes)?;
            blocks.iter().try_for_each(|&each| schedule.unroll(each))?;
        }
        let part = DEEP * largest_part(depth / DEEP, PART / DEEP);
        let parts = schedule.split(steps, &[None, Some(part)], Tail::Perfect)?;
        schedule.reorder(&[&[parts[0], rows], columns, &[parts[1], few]].concat())?;
        let is_wide = wide == Some(WIDE);
        let intrinsic = self.intrinsics[usize::from(!is_wide)];
        schedule.tensorize(rows, intrinsic)
    }
}

/// Cuts a loop of a sum and of its result, that before the last `behind` of the result's, into parts of a size, the loop over which comes
/// first; what does not fill a part is a piece of its own.
fn cut(schedule: &mut Schedule, piece: Piece, behind: usize, size: i64) -> Result<Vec<Piece>> {
    let at = schedule.loops(piece[1])?.len() - behind;
    let extent = schedule.loops(piece[1])?.get(at).and_then(|&each| schedule.extent(each));
    if extent.is_none_or(|extent| extent % size != 0) {
        return Ok(vec![piece, cut_off(schedule, &piece, at, size)?]);
    }
    for block in piece {
        let outer = schedule.loops(block)?[..=at].to_vec();
        let parts = schedule.split(outer[at], &[None, Some(size)], Tail::Perfect)?;
        schedule.reorder(&[&parts[..1], &outer[..at], &parts[1..]].concat())?;
    }
    Ok(vec![piece])
}

/// The largest number up to `most` that shares out rows evenly and leaves none alone.
fn evenly(rows: i64, most: i64) -> i64 {
    let parts = (rows + most - 1) / most;
    let even = (rows + parts - 1) / parts;
    (2..=even).rev().find(|each| rows % each != 1).unwrap_or(even)
}

fn no_dots<T>() -> Result<T> {
    Err(Refusal::new("the program is no product packed for tiles"))
}
