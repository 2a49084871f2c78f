//! Convolutions of bytes, or of bf16, in tiles of pixels by vectors of channels, by instructions for dot products.
//!
//! ```ir
//! for %c … { for %y … { for %x … { for %l in 0..16 {            for %c_0 … parallel { for %y … { for %x_0 … {
//!   for %q … { for %ky … { for %kx … { for %s in 0..4 {            for %x_1 … { for %c_1 … { for %l … vectorized { block "acc_init" … } } }
//!     block "acc" … } } } } } } } }                          =>    for %q … { for %ky … { for %kx … { for %x_1 … unrolled { for %c_1 … unrolled {
//! for %c … { for %y … { for %x … { for %l in 0..16 {                 for %l … { for %s … } } with vpdpbusd } } } } }
//!   block "out" … } } } }                                          for %x_1 … { for %c_1 … { for %l … vectorized { block "out" … } } } } } }
//! ```
//!
//! The sums of a tile stay in registers over all of a kernel: an instruction reads four channels of a pixel, or two of bf16, the same for
//! all its outputs, and a vector of packed weights. Where a row is short some rows are a tile. What follows the sum is done to a tile
//! while it is there. Pixels that fill no tile have a smaller one; in rows of unknown length each that is left is a tile.

use tenon_plugin_api::rule;
use tenon_schedule::{Block, Loop, Machine, Refusal, Result, Schedule, Tail, Task};

use crate::byte_dots::Dots;
use crate::product::{as_one_row, cut_off, groups_apart, on_threads, sum_and_result};
use crate::threads::WORK_FOR_THREADS;
use crate::{attempt, finish, inlining};

/// Products of a sum that an instruction adds: of bytes, and of bf16.
const GROUPS: [i64; 2] = [4, 2];
/// Sums that are in flight in an instruction's latency, for each of the units.
const LATENCY: i64 = 4;
/// What a step of the sum costs beside its instructions, in cycles.
const OVERHEAD: f64 = 0.75;
/// What a tile costs beside its steps, in steps.
const START: f64 = 4.0;
/// Pixels or rows that an image is taken to have of which the number is not known.
const MANY: i64 = 64;
/// Taps of a row that are written out, where there are so many registers.
const TAPS: i64 = 3;
const REGISTERS: i64 = 32;

/// Tiles of pixels by vectors of output channels.
#[rule(schedule, key = "any", benefit = 7)]
fn byte_conv(task: &mut Task) -> Result<()> {
    let anchor = task.schedule.anchor()?;
    let at_hand = |&group: &i64| Some((Dots::of(task, anchor, Some(group))?, group));
    let Some((dots, group)) = GROUPS.iter().find_map(at_hand) else { return no_convolution() };
    let machine = task.machine();
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() {
        return no_convolution();
    }
    inlining::inline_all(schedule);
    let (sum, out) = sum_and_result(schedule)?;
    let before = schedule.producers(sum)?;
    groups_apart(schedule, sum, out, None)?;
    frames_outside(schedule, [sum, out])?;
    let conv = Convolution { blocks: [sum, out], dots, group };
    let apart = schedule.snapshot();
    let is_joined = joined(schedule, [sum, out])?;
    let made = match conv.tiled(schedule, &machine, !is_joined) {
        // Parts of a row that is a number times an unknown one are not always known to lie apart.
        Err(_) if is_joined => {
            schedule.restore(apart);
            conv.tiled(schedule, &machine, true)
        }
        made => made,
    };
    let (sizes, tile, threads) = made?;
    for block in before {
        finish::alone(schedule, block, machine.lanes() * group, machine.threads > 1);
    }
    let Tile { rows, pixels, vectors } = tile;
    task.because(format!(
        "{rows} rows by {pixels} pixels by {vectors} vectors of sums stay in registers"
    ));
    task.predict(sizes.cycles(tile, &machine) / threads as f64);
    Ok(())
}

/// A sum and its result, and the instruction that adds so many products.
struct Convolution {
    blocks: [Block; 2],
    dots: Dots,
    group: i64,
}

impl Convolution {
    /// Computes it in tiles; says in which, and on how many threads.
    fn tiled(
        &self,
        schedule: &mut Schedule,
        machine: &Machine,
        of_lines: bool,
    ) -> Result<(Sizes, Tile, i64)> {
        let &Self { blocks, dots, group } = self;
        let taps = if machine.registers < REGISTERS { 1 } else { TAPS };
        let sizes = Sizes::of(schedule, blocks, (dots, group), taps, of_lines)?;
        in_groups(schedule, blocks[0], sizes.kept)?;
        let tile = sizes.best(machine)?;
        let threads = if sizes.work() >= WORK_FOR_THREADS { machine.threads } else { 1 };
        let (left, of_left) = match sizes.pixels {
            None if tile.pixels > 1 => {
                let whole = Sizes { kept: sizes.kept + 1, ..sizes };
                let left = cut_off(schedule, &blocks, sizes.kept - 2, tile.pixels)?;
                in_tiles(schedule, blocks, &whole, tile, dots, threads)?;
                (left, Tile { pixels: 1, ..tile })
            }
            _ => (blocks, tile),
        };
        in_tiles(schedule, left, &sizes, of_left, dots, threads)?;
        Ok((sizes, tile, threads))
    }
}

/// The extents of a convolution.
#[derive(Clone, Copy)]
struct Sizes {
    /// Loops over the result.
    kept: usize,
    /// Whether one of these is over rows of an image; otherwise all pixels are a row.
    of_lines: bool,
    /// Steps of those outside of the blocks of channels.
    outer: i64,
    blocks: i64,
    /// Of an image; none where the number is not known.
    rows: Option<i64>,
    pixels: Option<i64>,
    lanes: i64,
    /// Groups of a sum.
    depth: i64,
    /// Of these, neighbouring taps that are written out.
    taps: i64,
}

/// Sums that stay in registers: rows of pixels by vectors of channels.
#[derive(Clone, Copy)]
struct Tile {
    rows: i64,
    pixels: i64,
    vectors: i64,
}

impl Sizes {
    fn of(
        schedule: &mut Schedule,
        [sum, out]: [Block; 2],
        (dots, group): (Dots, i64),
        taps: i64,
        of_lines: bool,
    ) -> Result<Self> {
        let (of_sum, of_out) = (schedule.loops(sum)?, schedule.loops(out)?);
        let (kept, depth) = of_sum.split_at(of_out.len().min(of_sum.len()));
        let extents = |loops: &[Loop]| -> Vec<Option<i64>> {
            loops.iter().map(|&each| schedule.extent(each)).collect()
        };
        let is_apart = schedule.reduced_and_kept(sum, &of_sum) == (depth.to_vec(), kept.to_vec());
        let (own, results) = (extents(kept), extents(&of_out));
        let (image, rest) = match results.len().checked_sub(if of_lines { 3 } else { 2 }) {
            Some(at) => (&results[at..], &results[..at]),
            None => return no_convolution(),
        };
        let Some(steps) = extents(depth).into_iter().collect::<Option<Vec<i64>>>() else {
            return no_convolution();
        };
        let (
            &[ref rows @ .., pixels, Some(lanes)],
            &[ref outer @ .., Some(blocks)],
            Some((&last, steps)),
        ) = (image, rest, steps.split_last())
        else {
            return no_convolution();
        };
        let rows = rows.first().copied().unwrap_or(Some(1));
        let outer = outer.iter().map(|extent| extent.unwrap_or(1));
        let is_one = last == group
            && own == results
            && !own.contains(&Some(0))
            && is_apart
            && dots.have(lanes);
        let (outer, depth) = (outer.product(), steps.iter().product());
        let taps = steps.last().copied().filter(|steps| *steps <= taps).unwrap_or(1);
        match is_one {
            true => {
                let kept = own.len();
                Ok(Self { kept, of_lines, outer, blocks, rows, pixels, lanes, depth, taps })
            }
            false => no_convolution(),
        }
    }

    fn work(&self) -> i64 {
        let image = self.rows.unwrap_or(MANY) * self.pixels.unwrap_or(MANY);
        let sums = self.outer * self.blocks * image * self.lanes;
        sums.saturating_mul(self.depth)
    }

    /// The tile that takes least time; of equal ones the one that reads weights least often.
    fn best(&self, machine: &Machine) -> Result<Tile> {
        let mut best: Option<(f64, Tile)> = None;
        for vectors in (1..=self.blocks).filter(|vectors| self.blocks % vectors == 0) {
            // The compiler loads what a step of the loop reads first: all weights, and all pixels that neighbouring taps see.
            let most = (machine.registers - self.taps * (vectors + 1)) / (vectors + 1);
            let width = self.pixels.unwrap_or(MANY);
            let in_a_row = (1..=width.min(most)).map(|pixels| (1, pixels));
            let height = self.rows.filter(|_| self.pixels.is_some()).unwrap_or(1);
            let in_rows = (2..=height.min(most / width)).map(|rows| (rows, width));
            for (rows, pixels) in in_a_row.chain(in_rows) {
                let tile = Tile { rows, pixels, vectors };
                let cycles = self.cycles(tile, machine);
                if best.is_none_or(|(least, _)| cycles < least) {
                    best = Some((cycles, tile));
                }
            }
        }
        best.map_or_else(no_convolution, |(_, tile)| Ok(tile))
    }

    /// Cycles of all tiles of a shape, those of the pixels that are left included.
    fn cycles(&self, tile: Tile, machine: &Machine) -> f64 {
        let units = machine.fma_units.max(1);
        let step = |pixels: i64| {
            let sums = pixels * tile.vectors;
            let dots = sums.max(LATENCY * units) as f64 / units as f64;
            // Two loads in a cycle.
            let loads = (pixels + tile.vectors) as f64 / 2.0;
            (dots.max(loads) + OVERHEAD / self.taps as f64) * (self.depth as f64 + START)
        };
        let cut = |extent: i64, size: i64, of: &dyn Fn(i64) -> f64| {
            let rest = extent % size;
            (extent / size) as f64 * of(size) + if rest > 0 { of(rest) } else { 0.0 }
        };
        let [rows, pixels] = [self.rows, self.pixels].map(|extent| extent.unwrap_or(MANY));
        let of_rows = match tile.rows {
            // Of a row whose length is not known half a tile is left, pixel by pixel.
            1 if self.pixels.is_none() => {
                let left = (tile.pixels - 1) as f64 / 2.0;
                let whole = (pixels as f64 - left) / tile.pixels as f64;
                rows as f64 * (whole * step(tile.pixels) + left * step(1))
            }
            1 => rows as f64 * cut(pixels, tile.pixels, &step),
            high => cut(rows, high, &|rows| step(rows * tile.pixels)),
        };
        of_rows * (self.outer * self.blocks / tile.vectors) as f64
    }
}

/// Puts the loop over blocks of output channels next to that over rows, where one over the frames of a film stands between them: a tile
/// reads the data of a frame.
fn frames_outside(schedule: &mut Schedule, [sum, out]: [Block; 2]) -> Result<()> {
    let kept = schedule.loops(out)?.len();
    let loops = schedule.loops(sum)?;
    let Some(frames) = kept.checked_sub(4).filter(|_| loops.len() > kept) else { return Ok(()) };
    let lanes = loops[kept - 1];
    let moved = |each: Loop| -> Vec<bool> {
        let strides = schedule.strides(each);
        let read = strides.iter().filter(|stride| !stride.is_store && !stride.is_written);
        read.map(|stride| stride.elements != Some(0)).collect()
    };
    // Lanes are of output channels, so what moves with them is the kernel.
    let Some(kernel) = moved(lanes).iter().position(|&is_moved| is_moved) else { return Ok(()) };
    let moves_kernel = |each: Loop| moved(each).get(kernel) == Some(&true);
    if moves_kernel(loops[frames]) {
        return Ok(());
    }
    let Some(blocks) = (0..frames).rev().find(|&at| moves_kernel(loops[at])) else { return Ok(()) };
    for block in [sum, out] {
        let loops = schedule.loops(block)?;
        schedule.reorder(&[&loops[blocks + 1..=frames], &loops[blocks..=blocks]].concat())?;
    }
    Ok(())
}

/// Makes one row of all pixels of an image whose rows are of unknown length, where each sees one pixel alone. Says whether it has.
fn joined(schedule: &mut Schedule, blocks: [Block; 2]) -> Result<bool> {
    let loops = schedule.loops(blocks[1])?;
    let &[.., _, pixels, _] = loops.as_slice() else { return Ok(false) };
    let is_open = schedule.extent(pixels).is_none();
    Ok(is_open && attempt(schedule, |schedule| as_one_row(schedule, blocks, loops.len() - 3)))
}

/// Cuts the loop over groups where data lies in larger blocks of channels, so that its inner steps are next to each other.
fn in_groups(schedule: &mut Schedule, sum: Block, kept: usize) -> Result<()> {
    let groups = schedule.loops(sum)?[kept];
    let is_known = |schedule: &Schedule, each: Loop| {
        schedule.strides(each).iter().all(|stride| stride.elements.is_some())
    };
    if is_known(schedule, groups) {
        return Ok(());
    }
    let steps = schedule.extent(groups).unwrap_or(1);
    for size in (2..steps.max(3)).filter(|size| steps % size == 0).rev() {
        let before = schedule.snapshot();
        let parts = schedule.split(groups, &[None, Some(size)], Tail::Perfect)?;
        if is_known(schedule, parts[1]) {
            return Ok(());
        }
        schedule.restore(before);
    }
    // Each group lies in a plane of its own, as large as the image.
    Ok(())
}

/// Computes the sums and what becomes of them in tiles.
fn in_tiles(
    schedule: &mut Schedule,
    [sum, out]: [Block; 2],
    sizes: &Sizes,
    tile: Tile,
    dots: Dots,
    threads: i64,
) -> Result<()> {
    let pixels = sizes.kept - 2;
    let at = pixels - 1 - usize::from(sizes.of_lines);
    let (row, size) = match tile.rows {
        1 => (pixels, tile.pixels),
        rows => (pixels - 1, rows),
    };
    let cut_sum = schedule.loops(sum)?[row];
    let sums = whole_and_rest(schedule, sum, cut_sum, size)?;
    let loops = schedule.loops(out)?;
    let over_blocks = schedule.split(loops[at], &[None, Some(tile.vectors)], Tail::Perfect)?;
    let (image, lanes) = loops[at + 1..].split_at(pixels - at);
    schedule.reorder(&[&over_blocks[..1], image, &over_blocks[1..], lanes].concat())?;
    let outs = whole_and_rest(schedule, out, loops[row], size)?;
    for (sum, out) in sums.into_iter().zip(outs) {
        // Loops of one step may be gone.
        let loops = schedule.loops(out)?;
        let Some(row) = (loops.len() + row).checked_sub(sizes.kept + 1) else {
            return no_convolution();
        };
        // Of the pixels that are left all are one tile.
        let size = schedule.extent(loops[row]).map_or(size, |extent| extent.min(size));
        let parts = schedule.split(loops[row], &[None, Some(size)], Tail::Perfect)?;
        let (outer, inner) = (&loops[..row], &loops[row + 1..]);
        schedule.compute_at(sum, parts[0])?;
        dots.tile_of_sums(schedule, sum, sizes.taps)?;
        schedule.unroll(parts[1])?;
        if let Some((&lanes, inner)) = inner.split_last() {
            inner.iter().try_for_each(|&each| schedule.unroll(each))?;
            schedule.vectorize(lanes)?;
        }
        if threads > 1 {
            on_threads(schedule, &[outer, &parts[..1]].concat(), threads);
        }
    }
    Ok(())
}

/// The parts of a block for the steps of a loop that fill tiles of a size, and for those that are left.
fn whole_and_rest(
    schedule: &mut Schedule,
    block: Block,
    each: Loop,
    size: i64,
) -> Result<Vec<Block>> {
    let extent = schedule.extent(each).unwrap_or(size);
    if extent % size == 0 || extent < size {
        return Ok(vec![block]);
    }
    let mut blocks = Vec::new();
    for part in schedule.partition(each, &[Some(extent / size * size)])? {
        match schedule.children(part)?.as_slice() {
            &[block] => blocks.push(block),
            _ => return no_convolution(),
        }
    }
    Ok(blocks)
}

fn no_convolution<T>() -> Result<T> {
    Err(Refusal::new(
        "the program is no convolution of bytes packed by quads, nor of bf16 packed by pairs",
    ))
}
