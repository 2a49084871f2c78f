//! How many rows stand inside of the loops over columns.
//!
//! With all rows inside, each tile's width of columns reads all of them anew. Where they are more than a cache close by holds, as an
//! image of many channels is, they come from a farther one each time, at as many places at once as there are blocks of channels, which no
//! prefetcher foresees. A chunk of rows that stays in the second cache costs the other operand: each chunk reads all of it again, but
//! from one end to the other (Goto and van de Geijn, 2008, "Anatomy of High-Performance Matrix Multiplication").

use tenon_schedule::{Loop, Machine, Result, Schedule, Tail};

use super::operands::{Form, MANY, Operands, moves};
use super::tile::{Shape, Wanted};
use crate::caches::bandwidth;

/// Steps of a chunk, as many as its knob may say.
const MOST: i64 = 64;
/// Bytes that lie side by side in caches.
const LINE: i64 = 64;
/// Which part of the time in which vectors come hides behind arithmetic, since they come in order.
const HIDDEN: f64 = 0.5;

/// What is cut into chunks.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    /// The loop, by its number.
    at: usize,
    /// Rows of it that are a step of a chunk.
    line: i64,
    /// The loop over rows inside of it.
    within: Option<usize>,
}

impl Cut {
    /// The last loop over rows but one; or the last, where it is `joined` of lines of so many rows, or the only one.
    pub(super) fn of(operands: &Operands, joined: Option<i64>) -> Option<Self> {
        match (joined, operands.rows.as_slice()) {
            (Some(line), &[.., at]) => Some(Self { at, line, within: None }),
            (None, &[at]) => Some(Self { at, line: 1, within: None }),
            (None, &[.., at, within]) => Some(Self { at, line: 1, within: Some(within) }),
            (_, &[]) => None,
        }
    }

    /// Whether the loop that is cut is the one that tiles are cut of, so that chunks are cut first.
    pub(super) fn is_of_last(self) -> bool {
        self.within.is_none()
    }

    /// How many steps should stand inside of the loops over columns, so that tiles and what they read take least time; zero for all.
    pub(super) fn best(
        self,
        schedule: &mut Schedule,
        operands: &Operands,
        machine: &Machine,
        wanted: Wanted,
    ) -> Result<i64> {
        if operands.form != Form::Columns || operands.is_unknown(self.at) {
            return Ok(0);
        }
        let all = operands.extent(self.at) / self.line;
        let whole = Shape::best(operands, machine, wanted)?;
        let Some(reads) = Reads::of(schedule, operands, self) else { return Ok(0) };
        let cycles = |size: i64| {
            let in_chunks = operands.with_extent(self.at, size * self.line);
            let own = self.is_of_last().then(|| Shape::best(&in_chunks, machine, wanted));
            let Ok(shape) = own.unwrap_or_else(|| Ok(whole.clone())) else { return f64::INFINITY };
            let tiles = shape.tiles_of_columns(operands) as f64;
            // A chunk shares its cache with the vectors that pass by.
            let rows = reads.rows(size * self.line);
            let rows = tiles * rows / bandwidth(machine, 2.0 * rows);
            let vectors = reads.vectors / bandwidth(machine, reads.vectors);
            let moved = rows + (1.0 - HIDDEN) * vectors;
            (all / size) as f64 * (moved + shape.cycles(&in_chunks, machine))
        };
        let is_whole =
            |&size: &i64| all % size == 0 && (self.is_of_last() || size % whole.outer == 0);
        let sizes = (1..=MOST.min(all - 1)).filter(is_whole);
        // Of those that are as good the largest, whose loops go on for longer.
        let costs = sizes.rev().map(|size| (size, cycles(size)));
        let best = costs.min_by(|(_, one), (_, other)| one.total_cmp(other));
        Ok(best.filter(|&(_, cost)| cost < cycles(all)).map_or(0, |(size, _)| size))
    }

    /// Cuts the loop into chunks of so many steps.
    pub(super) fn into_chunks(
        self,
        schedule: &mut Schedule,
        operands: &Operands,
        steps: i64,
    ) -> Result<()> {
        for block in [operands.sum, operands.out] {
            let each = schedule.loops(block)?[self.at];
            schedule.split(each, &[None, Some(steps * self.line)], Tail::Perfect)?;
        }
        Ok(())
    }
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
    fn of(schedule: &mut Schedule, operands: &Operands, cut: Cut) -> Option<Self> {
        let loops = schedule.loops(operands.sum).ok()?;
        let (kept, depth) = loops.split_at(operands.extents.len());
        let bytes = schedule.bits(operands.sum) / 8;
        let element = 1 - operands.vector;
        let of_loop = |each: Loop, operand: usize| {
            let moved = moves(schedule, each)?[operand]?.saturating_abs().saturating_mul(bytes);
            Some((moved, schedule.extent(each).unwrap_or(MANY)))
        };
        let inner = cut.within.map(|at| kept[at]);
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
        let (step, _) = of_loop(kept[cut.at], element)?;
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
