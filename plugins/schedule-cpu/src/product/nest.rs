//! The loops over tiles, and those within one.

use tenon_plugin_api::ir::STREAMS;
use tenon_schedule::{Block, Loop, Machine, Result, Schedule, Tail};

use super::bands::Bands;
use super::operands::{Form, Operands, UNROLLED_TAPS};
use super::tile::{Part, Shape};
use super::{STEPS, dots, no_product};
use crate::vectors::in_registers;
use crate::{attempt, finish};

/// Loops over rows within a chunk of them.
const IN_CHUNK: usize = 2;

/// Computes a product in tiles. Of the blocks before it those are taken that are computed inside of the loops over tiles.
pub(super) fn in_tiles(
    schedule: &mut Schedule,
    operands: &Operands,
    shape: &Shape,
    machine: &Machine,
    before: &mut Vec<Block>,
) -> Result<()> {
    let machine = &Machine { threads: operands.threads(machine), ..*machine };
    let bands = Bands::of(schedule, operands, shape, before);
    let sums = parts_of_sum(schedule, operands, shape)?;
    let mut nests = Vec::new();
    for (out, columns) in columns_of_result(schedule, operands, shape)? {
        nests.extend(loops_over_tiles(schedule, operands, shape, out, columns)?);
    }
    for (nest, sum) in nests.iter().zip(sums) {
        let Some(&at) = nest.outer.last() else { return no_product() };
        if operands.form == Form::Dots {
            dots::in_lanes(schedule, sum, at, operands.lanes)?;
            nest.inner.iter().try_for_each(|&each| schedule.unroll(each))?;
            continue;
        }
        schedule.compute_at(sum, at)?;
        nest.sum(schedule, operands, sum, operands.lanes)?;
        in_registers(schedule, &nest.inner, operands.lanes)?;
    }
    let mut banded = None;
    if let (Some(bands), Some(nest)) = (bands, nests.first_mut())
        && let Some(lines) = nest.lines
        && let Some(around) = bands.compute(schedule, &nest.outer[..=lines], machine)
    {
        nest.outer = around;
        banded = Some(bands.padded);
        before.clear();
    }
    if machine.threads > 1 {
        nests.iter().for_each(|nest| on_threads(schedule, &nest.outer, machine.threads));
    }
    if let Some(padded) = banded {
        finish::alone(schedule, padded, operands.lanes, false);
    }
    Ok(())
}

/// The parts of a loop over which tiles of different sizes go, as blocks.
fn parts(schedule: &mut Schedule, block: Block, each: Loop, parts: &[Part]) -> Result<Vec<Block>> {
    let Some((_, first)) = parts.split_last().filter(|(_, first)| !first.is_empty()) else {
        return Ok(vec![block]);
    };
    let lengths: Vec<Option<i64>> = first.iter().map(|part| Some(part.count)).collect();
    let loops = schedule.partition(each, &lengths)?;
    let mut blocks = Vec::new();
    for part in loops {
        match schedule.children(part)?.as_slice() {
            &[block] => blocks.push(block),
            _ => return no_product(),
        }
    }
    Ok(blocks)
}

/// The sum, once for each size of tiles: all of one width after the other.
fn parts_of_sum(schedule: &mut Schedule, operands: &Operands, shape: &Shape) -> Result<Vec<Block>> {
    let loops = schedule.loops(operands.sum)?;
    let kept = &loops[..operands.extents.len()];
    let mut order: Vec<Loop> = kept.to_vec();
    order.retain(|&each| each != kept[operands.column]);
    order.insert(0, kept[operands.column]);
    if shape.columns.len() > 1 {
        schedule.reorder(&order)?;
    }
    let mut sums = Vec::new();
    for sum in parts(schedule, operands.sum, kept[operands.column], &shape.columns)? {
        let Some(&row) = operands.rows.last() else {
            sums.push(sum);
            continue;
        };
        let mut order: Vec<usize> = (0..operands.extents.len()).collect();
        if shape.columns.len() > 1 {
            order.retain(|&at| at != operands.column);
            order.insert(0, operands.column);
        }
        let place = order.iter().position(|&at| at == row).unwrap_or(0);
        let row = schedule.loops(sum)?[place];
        sums.extend(parts(schedule, sum, row, &shape.rows)?);
    }
    Ok(sums)
}

/// The result with loops over columns and blocks of them outside of those over rows, once for each width of tiles.
fn columns_of_result(
    schedule: &mut Schedule,
    operands: &Operands,
    shape: &Shape,
) -> Result<Vec<(Block, Part)>> {
    let loops = schedule.loops(operands.out)?;
    let order: Vec<Loop> = order(operands).into_iter().map(|at| loops[at]).collect();
    if order != loops {
        schedule.reorder(&order)?;
    }
    let blocks = parts(schedule, operands.out, loops[operands.column], &shape.columns)?;
    Ok(blocks.into_iter().zip(shape.columns.iter().copied()).collect())
}

/// The loops over the result: what moves both operands, then columns, then rows.
fn order(operands: &Operands) -> Vec<usize> {
    let is_column = |at: usize| at == operands.column || Some(at) == operands.blocks;
    let others = |at: &usize| !is_column(*at) && !operands.rows.contains(at);
    let mut order: Vec<usize> = (0..operands.extents.len()).filter(others).collect();
    order.extend(operands.blocks);
    order.push(operands.column);
    order.extend(&operands.rows);
    order
}

/// The loops around a part of the result.
struct Nest {
    /// Those over tiles, outermost first.
    outer: Vec<Loop>,
    /// Which of these is over lines of rows.
    lines: Option<usize>,
    /// Those within a tile.
    inner: Vec<Loop>,
    /// The extents of a tile.
    tile: Vec<i64>,
}

/// Cuts the loops of the result into those over tiles of one width and those within one, once for each height.
fn loops_over_tiles(
    schedule: &mut Schedule,
    operands: &Operands,
    shape: &Shape,
    out: Block,
    columns: Part,
) -> Result<Vec<Nest>> {
    let order = order(operands);
    let place = |at: usize| order.iter().position(|&other| other == at).unwrap_or(0);
    let loops = schedule.loops(out)?;
    let mut tile = vec![1; operands.extents.len()];
    let first_row = operands.rows.first().map_or(order.len(), |&at| place(at));
    let first_column = operands.blocks.map_or(place(operands.column), place);
    let (mut outer, rows) = (loops[..first_column].to_vec(), &loops[first_row..]);
    let mut inner = Vec::new();
    if let Some(at) = operands.blocks {
        let [over, within] = cut(schedule, loops[place(at)], shape.blocks)?;
        outer.extend(over);
        inner.extend(within);
        tile[at] = shape.blocks;
    }
    let column = loops[place(operands.column)];
    tile[operands.column] = columns.size;
    match operands.blocks {
        Some(_) if columns.size == operands.extent(operands.column) => inner.push(column),
        _ => {
            // A loop of one step, where there is one tile: it is where the sum goes.
            let tail = match operands.is_unknown(operands.column) {
                true if columns.size > 1 => Tail::Mask,
                _ => Tail::Perfect,
            };
            let parts = schedule.split(column, &[None, Some(columns.size)], tail)?;
            outer.push(parts[0]);
            inner.push(parts[1]);
        }
    }
    // What is outside of them holds the loops over all columns.
    let moved = outer[first_column..].iter().chain(rows).chain(&inner);
    let moved: Vec<Loop> = moved.copied().collect();
    schedule.reorder(&moved)?;
    let Some(&row) = operands.rows.last() else {
        return Ok(vec![Nest { outer, lines: None, inner, tile }]);
    };
    let mut inside = rows.len();
    if shape.chunk > 0 {
        let columns = outer.split_off(first_column);
        outer.extend(in_chunks(schedule, &columns, rows, shape.chunk)?);
        inside = inside.min(IN_CHUNK);
    }
    let mut nests = Vec::new();
    let outs = parts(schedule, out, loops[place(row)], &shape.rows)?;
    for (out, part) in outs.into_iter().zip(&shape.rows) {
        let loops = schedule.loops(out)?;
        let (over_columns, rest) = loops.split_at(outer.len());
        let (rows, within_columns) = rest.split_at(inside);
        let [over, within] = of_rows(schedule, rows, shape, *part)?;
        let lines = over_columns.len() + rows.len();
        let outer = [over_columns, over.as_slice()].concat();
        let lines = lines.checked_sub(2).filter(|&at| over_columns.len() <= at && at < outer.len());
        let inner = [within.as_slice(), within_columns].concat();
        let mut tile = tile.clone();
        for (&at, size) in operands.rows.iter().rev().zip([part.size, shape.outer]) {
            tile[at] = size;
        }
        nests.push(Nest { outer, lines, inner, tile });
    }
    Ok(nests)
}

/// Lets but `chunk` steps of the last loop over rows but one stand inside of the loops over columns. Those that stand outside then are
/// given.
fn in_chunks(
    schedule: &mut Schedule,
    columns: &[Loop],
    rows: &[Loop],
    chunk: i64,
) -> Result<Vec<Loop>> {
    let [before @ .., cut, _] = rows else { return no_product() };
    let parts = schedule.split(*cut, &[None, Some(chunk)], Tail::Perfect)?;
    let order = [before, &parts[..1], columns, &parts[1..]].concat();
    schedule.reorder(&order)?;
    Ok(order[..order.len() - 1].to_vec())
}

/// The loops over tiles and those within one, of those over rows.
fn of_rows(
    schedule: &mut Schedule,
    rows: &[Loop],
    shape: &Shape,
    part: Part,
) -> Result<[Vec<Loop>; 2]> {
    let Some((&row, outer)) = rows.split_last() else { return Ok([Vec::new(), Vec::new()]) };
    let (mut over, mut within) = (outer.to_vec(), Vec::new());
    if let (Some(&last), 2..) = (outer.last(), shape.outer) {
        over.pop();
        let [tiles, rows] = cut(schedule, last, shape.outer)?;
        over.extend(tiles);
        within.extend(rows);
    }
    let [tiles, inner] = cut(schedule, row, part.size)?;
    over.extend(tiles);
    within.extend(inner);
    Ok([over, within])
}

/// A loop over tiles of so many steps and one within a tile; none where it has one step.
fn cut(schedule: &mut Schedule, each: Loop, size: i64) -> Result<[Option<Loop>; 2]> {
    match schedule.extent(each) {
        Some(extent) if extent == size => Ok([None, Some(each)]),
        _ if size == 1 => Ok([Some(each), None]),
        _ => {
            let parts = schedule.split(each, &[None, Some(size)], Tail::Perfect)?;
            Ok([Some(parts[0]), Some(parts[1])])
        }
    }
}

impl Nest {
    /// The loops of a tile's sum: those of the depth outside, those of the tile written out inside, and it starts before.
    fn sum(
        &self,
        schedule: &mut Schedule,
        operands: &Operands,
        sum: Block,
        lanes: i64,
    ) -> Result<()> {
        let own = schedule.own_loops(sum)?;
        let (depth, kept) = schedule.reduced_and_kept(sum, &own);
        let Some(&first) = depth.first() else { return no_product() };
        let kept = self.in_order(schedule, operands, kept)?;
        schedule.reorder(&[depth.as_slice(), kept.as_slice()].concat())?;
        let start = schedule.decompose_reduction(sum, first)?;
        let of_start: Vec<Loop> = schedule.own_loops(start)?;
        in_registers(schedule, &of_start, lanes)?;
        in_registers(schedule, &kept, lanes)?;
        let is_short =
            |&last: &Loop| schedule.extent(last).is_some_and(|steps| steps <= UNROLLED_TAPS);
        let is_unrolled = operands.form == Form::Depthwise || operands.is_packed;
        let written_out = depth.last().filter(|last| is_unrolled && is_short(last));
        if let Some(&last) = written_out {
            schedule.unroll(last)?;
        }
        let serial = if written_out.is_some() { &depth[..depth.len() - 1] } else { &depth };
        match serial.last() {
            Some(&last) if operands.is_stream(schedule) => schedule.annotate(last, STREAMS, true),
            _ => Ok(()),
        }
    }

    /// Loops over what a sum keeps: rows, then blocks of columns, then columns.
    fn in_order(
        &self,
        schedule: &Schedule,
        operands: &Operands,
        kept: Vec<Loop>,
    ) -> Result<Vec<Loop>> {
        let mut places: Vec<usize> = (0..self.tile.len()).collect();
        if kept.len() != self.tile.len() {
            // Loops of one step are left out where a block was moved.
            places.retain(|&at| self.tile[at] > 1);
        }
        let extents = kept.iter().map(|&each| schedule.extent(each));
        if !extents.eq(places.iter().map(|&at| Some(self.tile[at]))) {
            return no_product();
        }
        let rank = |at: usize| match at {
            at if at == operands.column => 2,
            at if Some(at) == operands.blocks => 1,
            _ => 0,
        };
        let mut loops: Vec<(usize, Loop)> = places.into_iter().zip(kept).collect();
        loops.sort_by_key(|&(at, _)| rank(at));
        Ok(loops.into_iter().map(|(_, each)| each).collect())
    }
}

/// Runs as many of the outermost loops over tiles as have steps enough for all threads on these, as one; or those that have most.
pub(crate) fn on_threads(schedule: &mut Schedule, tiles: &[Loop], threads: i64) {
    if !tiles.iter().all(|&each| schedule.is_serial(each)) {
        return;
    }
    let enough = STEPS * threads;
    let ranges =
        (0..tiles.len()).flat_map(|start| (start + 1..=tiles.len()).map(move |end| start..end));
    let mut ranges: Vec<_> = ranges.collect();
    // Enough is enough; then the outermost, of the fewest loops. A number that is not known may be one, as that of a batch often is,
    // so where those that are known are not enough the more loops the better.
    ranges.sort_by_key(|range| {
        let extents = tiles[range.clone()].iter().map(|&each| schedule.extent(each));
        let open = extents.clone().filter(Option::is_none).count() as i64;
        let steps = extents.flatten().fold(1, i64::saturating_mul).min(enough);
        (-steps, if steps < enough { -open } else { 0 }, range.start, range.end)
    });
    for range in ranges {
        let is_done = attempt(schedule, |schedule| {
            let joined = match &tiles[range.clone()] {
                &[only] => only,
                several => schedule.fuse(several)?,
            };
            schedule.parallel(joined)
        });
        if is_done {
            return;
        }
    }
}
