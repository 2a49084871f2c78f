//! How many rows stand inside of the loops over columns.
//!
//! With all rows inside, each tile's width of columns reads all of them anew. Where they are more than a cache close by holds, as an
//! image of many channels is, they come from a farther one each time, at as many places at once as there are blocks of channels, which no
//! prefetcher foresees. A chunk of rows that stays in the second cache costs the other operand: each chunk reads all of it again, but
//! from one end to the other (Goto and van de Geijn, 2008, "Anatomy of High-Performance Matrix Multiplication").

use tenon_schedule::{Loop, Machine, Result, Schedule, Tail};

use super::operands::{Form, MANY, Operands, moves};
use super::tile::Shape;
use crate::caches::bandwidth;

/// Steps of a chunk, as many as its knob may say.
const MOST: i64 = 64;
/// Bytes that lie side by side in caches.
const LINE: i64 = 64;
/// Which part of the time in which vectors come hides behind arithmetic, since they come in order.
const HIDDEN: f64 = 0.5;

/// How many steps of the last loop over rows but one should stand inside of the loops over columns, so that what is read comes in the
/// least time; zero for all.
pub(super) fn best(
    schedule: &mut Schedule,
    operands: &Operands,
    shape: &Shape,
    machine: &Machine,
) -> i64 {
    let &[.., outer, _] = operands.rows.as_slice() else { return 0 };
    if operands.form != Form::Columns || operands.is_unknown(outer) {
        return 0;
    }
    let Some(reads) = Reads::of(schedule, operands, outer) else { return 0 };
    let all = operands.extent(outer);
    let sizes = (1..=MOST.min(all - 1)).filter(|size| all % size == 0 && size % shape.outer == 0);
    let tiles = shape.tiles_of_columns(operands) as f64;
    let cycles = |size: i64| {
        let chunks = (all / size) as f64;
        let rows = reads.rows(size);
        // A chunk shares its cache with the vectors that pass by.
        let rows = tiles * rows / bandwidth(machine, 2.0 * rows);
        let vectors = reads.vectors / bandwidth(machine, reads.vectors);
        chunks * (rows + (1.0 - HIDDEN) * vectors)
    };
    // Of those that are as good the largest, whose loops go on for longer.
    let best = sizes.rev().min_by(|&one, &other| cycles(one).total_cmp(&cycles(other)));
    best.filter(|&size| cycles(size) < cycles(all)).unwrap_or(0)
}

/// Cuts the only loop over rows into chunks of so many; whether there is but one.
pub(super) fn of_one_loop(schedule: &mut Schedule, operands: &Operands, rows: i64) -> Result<bool> {
    let &[at] = operands.rows.as_slice() else { return Ok(false) };
    for block in [operands.sum, operands.out] {
        let each = schedule.loops(block)?[at];
        schedule.split(each, &[None, Some(rows)], Tail::Perfect)?;
    }
    Ok(true)
}

/// What a sum reads.
struct Reads {
    /// Bytes from one element to the next, and how many there are, of the loops that move the operand that comes element by element:
    /// those within the last loop over rows but one.
    elements: Vec<(i64, i64)>,
    /// Bytes from one step to the next of that loop.
    step: i64,
    /// Bytes of an element.
    element: i64,
    /// Bytes of the operand that is loaded in vectors.
    vectors: f64,
}

impl Reads {
    /// None where it is not known how a loop moves what is read.
    fn of(schedule: &mut Schedule, operands: &Operands, outer: usize) -> Option<Self> {
        let loops = schedule.loops(operands.sum).ok()?;
        let (kept, depth) = loops.split_at(operands.extents.len());
        let bytes = schedule.bits(operands.sum) / 8;
        let element = 1 - operands.vector;
        let of_loop = |each: Loop, operand: usize| {
            let moved = moves(schedule, each)?[operand]?.saturating_abs().saturating_mul(bytes);
            Some((moved, schedule.extent(each).unwrap_or(MANY)))
        };
        let inner = operands.rows.last().map(|&at| kept[at]);
        let columns = operands.blocks.into_iter().chain([operands.column]);
        let elements: Option<Vec<_>> = inner
            .into_iter()
            .chain(depth.iter().copied())
            .map(|each| of_loop(each, element))
            .collect();
        let depth = depth.iter().map(|&each| of_loop(each, operands.vector));
        let vectors: f64 = columns.map(|at| operands.extent(at) as f64).product();
        let depth: Option<Vec<_>> = depth.collect();
        let deep = depth?.into_iter().filter(|&(moved, _)| moved > 0);
        let deep: f64 = deep.map(|(_, extent)| extent as f64).product();
        let mut elements = elements?;
        elements.sort_unstable();
        let (step, _) = of_loop(kept[outer], element)?;
        Some(Self { elements, step, element: bytes, vectors: vectors * deep * bytes as f64 })
    }

    /// Bytes of the caches that so many steps of the loop over rows see, each once: what lies within a line or what was seen already is
    /// seen as a whole.
    fn rows(&self, steps: i64) -> f64 {
        let mut loops = self.elements.clone();
        let at = loops.partition_point(|&(moved, _)| moved <= self.step);
        loops.insert(at, (self.step, steps));
        let (mut bytes, mut reach) = (self.element as f64, self.element);
        for (moved, extent) in loops {
            let further = moved.saturating_mul(extent - 1);
            bytes *= match moved <= reach.max(LINE) {
                true => reach.saturating_add(further) as f64 / reach as f64,
                false => extent as f64,
            };
            reach = reach.saturating_add(further);
        }
        bytes
    }
}
