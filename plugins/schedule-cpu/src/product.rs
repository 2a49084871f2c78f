//! A product of matrices, in tiles of rows by vectors of columns that stay in registers.
//!
//! ```ir
//! for %i … { for %j … { for %r … {                     for %tile … parallel {                       columns, then rows
//!   block "acc" … } } }                                  for %i_1 in 0..14 unrolled { … block "acc_init" … }
//! for %i … { for %j … {                                  for %r … { for %i_1 in 0..14 unrolled { for %j_1 in 0..2 unrolled {
//!   block "out" … } }                           =>         for %j_2 in 0..16 vectorized { block "acc" … } } } }
//!                                                        for %i_1 in 0..14 unrolled { … block "out" … }
//! ```
//!
//! The right matrix lies row by row, so that neighbouring columns are a vector. At each step of the sum two vectors of it are
//! loaded, and each row brings one element of the left matrix that is multiplied with both. A tile has as many rows as the
//! registers hold, of those that divide the matrix. Whatever follows the sum is done to the tile while it is there.

use tenon_plugin_api::rule;
use tenon_schedule::{Block, Loop, Refusal, Result, Schedule, Tail, Task};

use crate::{inlining, threads};

/// Vectors of columns of a tile.
const VECTORS: i64 = 2;
/// Steps of a loop for each thread, so that none waits long for the last.
const STEPS: i64 = 4;
/// Rows below which the multiply-add units wait for loads.
const FEW: i64 = 4;
/// Registers that are neither sums nor vectors of the right matrix.
const OTHERS: i64 = 2;

/// Tiles of rows by vectors of columns.
#[rule(schedule, key = "any", benefit = 2)]
fn product(task: &mut Task) -> Result<()> {
    let lanes = task.lanes();
    let registers = task.target().int("vector_registers").unwrap_or(16);
    let threads = task.threads();
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() {
        return no_product();
    }
    inlining::inline_all(schedule);
    let product = Product::of(schedule)?;
    let tile = Tile::of(schedule, &product, lanes, registers)?;
    let tiles = product.in_tiles(schedule, tile)?;
    if threads > 1 && product.steps(schedule) >= threads::WORK_FOR_THREADS {
        on_threads(schedule, &tiles, threads)?;
    }
    Ok(())
}

/// Runs the first of the loops over tiles that has steps enough for all threads on these, outermost; the longest where none has.
fn on_threads(schedule: &mut Schedule, tiles: &[Loop], threads: i64) -> Result<()> {
    let steps = |each: &Loop| schedule.extent(*each).unwrap_or(1);
    let enough = tiles.iter().position(|each| steps(each) >= STEPS * threads);
    let longest = || (0..tiles.len()).max_by_key(|&at| steps(&tiles[at]));
    let Some(at) = enough.or_else(longest) else { return Ok(()) };
    let others = tiles.iter().filter(|&&each| each != tiles[at]);
    let order: Vec<Loop> = [tiles[at]].into_iter().chain(others.copied()).collect();
    schedule.reorder(&order)?;
    schedule.parallel(tiles[at])
}

fn no_product<T>() -> Result<T> {
    Err(Refusal::new("the program is no product with a matrix that lies row by row"))
}

/// A sum of products, and the block that writes what becomes of it.
struct Product {
    sum: Block,
    out: Block,
    /// The loops of the sum: the last two places of the result, and the depth.
    row: Loop,
    column: Loop,
    depth: Loop,
}

impl Product {
    fn of(schedule: &mut Schedule) -> Result<Self> {
        let (blocks, sum) = (schedule.all_blocks(), schedule.anchor()?);
        let &[first, out] = blocks.as_slice() else { return no_product() };
        if first != sum || !schedule.is_reduction(sum) || schedule.is_reduction(out) {
            return no_product();
        }
        let loops = schedule.loops(sum)?;
        let &[.., row, column, depth] = loops.as_slice() else { return no_product() };
        let is_deep = |schedule: &Schedule, each| schedule.is_reduced(sum, each);
        if !is_deep(schedule, depth) || is_deep(schedule, column) || is_deep(schedule, row) {
            return no_product();
        }
        let product = Self { sum, out, row, column, depth };
        match product.lies_row_by_row(schedule) && schedule.loops(out)?.len() + 1 == loops.len() {
            true => Ok(product),
            false => no_product(),
        }
    }

    /// Whether neighbouring columns of one operand are neighbours in memory, and rows do not move it; the other one is moved by rows
    /// alone.
    fn lies_row_by_row(&self, schedule: &Schedule) -> bool {
        let of_operands = |each: Loop| -> Vec<Option<i64>> {
            let strides = schedule.strides(each).into_iter();
            strides.filter(|stride| !stride.is_written).map(|stride| stride.elements).collect()
        };
        let (by_column, by_row) = (of_operands(self.column), of_operands(self.row));
        let is_left = |at: usize| by_column[at] == Some(0);
        let is_right = |at: usize| by_column[at] == Some(1) && by_row[at] == Some(0);
        by_column.len() == 2
            && by_row.len() == 2
            && (is_left(0) && is_right(1) || is_left(1) && is_right(0))
    }

    fn steps(&self, schedule: &mut Schedule) -> i64 {
        threads::work(schedule, self.sum)
    }

    /// The loops over tiles, outermost first; inside of them there are a tile of sums and what becomes of it.
    fn in_tiles(&self, schedule: &mut Schedule, tile: Tile) -> Result<Vec<Loop>> {
        let mut outer = schedule.loops(self.out)?;
        let (column, row) = (outer.pop(), outer.pop());
        let (Some(column), Some(row)) = (column, row) else { return no_product() };
        let rows = schedule.split(row, &[None, Some(tile.rows)], Tail::Perfect)?;
        let columns = schedule.split(column, &[None, Some(tile.columns)], Tail::Perfect)?;
        schedule.reorder(&[columns[0], rows[0], rows[1], columns[1]])?;
        schedule.compute_at(self.sum, rows[0])?;
        outer.extend([columns[0], rows[0]]);

        let own = schedule.own_loops(self.sum)?;
        let depth = own.iter().copied().find(|&each| schedule.is_reduced(self.sum, each));
        let Some(depth) = depth else { return no_product() };
        let kept: Vec<Loop> = own.into_iter().filter(|&each| each != depth).collect();
        schedule.reorder(&[&[depth], kept.as_slice()].concat())?;
        let start = schedule.decompose_reduction(self.sum, depth)?;
        for block in [start, self.sum] {
            let tile_loops: Vec<Loop> = schedule
                .own_loops(block)?
                .into_iter()
                .filter(|&each| !schedule.is_reduced(block, each))
                .collect();
            in_registers(schedule, &tile_loops, tile.lanes)?;
        }
        in_registers(schedule, &[rows[1], columns[1]], tile.lanes)?;
        Ok(outer)
    }
}

/// Writes the loops of a tile out, the last in vectors of so many lanes.
fn in_registers(schedule: &mut Schedule, loops: &[Loop], lanes: i64) -> Result<()> {
    let Some((&last, others)) = loops.split_last() else { return Ok(()) };
    for &each in others {
        schedule.unroll(each)?;
    }
    if schedule.extent(last).is_some_and(|extent| extent > lanes) {
        let parts = schedule.split(last, &[None, Some(lanes)], Tail::Perfect)?;
        schedule.unroll(parts[0])?;
        return schedule.vectorize(parts[1]);
    }
    schedule.vectorize(last)
}

/// The extents of a tile.
#[derive(Clone, Copy)]
struct Tile {
    rows: i64,
    columns: i64,
    lanes: i64,
}

impl Tile {
    /// The most rows and vectors that the registers hold and that divide the product. One that only few rows divide is left to others.
    fn of(schedule: &Schedule, product: &Product, lanes: i64, registers: i64) -> Result<Self> {
        let extents =
            [product.row, product.column, product.depth].map(|each| schedule.extent(each));
        let [Some(rows), Some(columns), Some(1..)] = extents else { return no_product() };
        let divides = |extent: i64| move |part: &i64| extent % part == 0;
        let vectors = (1..=VECTORS).rev().find(|vectors| columns % (vectors * lanes) == 0);
        let Some(vectors) = vectors else { return no_product() };
        let most = (registers - vectors - OTHERS) / vectors;
        let height = (1..=most).rev().find(divides(rows)).unwrap_or(1);
        match height >= rows.min(FEW) && columns > 0 {
            true => Ok(Self { rows: height, columns: vectors * lanes, lanes }),
            false => no_product(),
        }
    }
}
