//! Images that are filled up at their borders, some lines at a time.
//!
//! ```ir
//! for %c … { for %y in 0..114 { … padded … } }               for %c … { for %b in 0..4 {
//! for %c … { for %y in 0..112 { … sums of padded … } }   =>    for %y_0 in 0..30 { … padded … }
//!                                                              for %y_1 in 0..28 { … sums of padded … } } }
//! ```
//!
//! Where each channel has a filter of its own there is little to compute, and an image that was filled up as a whole comes back from
//! a farther cache than the one it is read from. A band of its lines stays near; neighbouring bands both fill the lines
//! that both see.

use tenon_schedule::{Block, Loop, Machine, Result, Schedule, Tail};

use super::operands::{Form, Operands, moves};
use super::tile::Shape;
use super::{STEPS, no_product};
use crate::attempt;

/// Bytes of a band, at most: each thread has one on its stack.
const BYTES: f64 = (1 << 16) as f64;
/// How often a line is filled up, at most, on the whole.
const MOST_OVERLAP: f64 = 1.5;

/// Lines of padded data that are read.
#[derive(Clone, Copy)]
pub(super) struct Bands {
    pub(super) padded: Block,
    /// Bytes of it that a line of the result lies behind the one before.
    line_bytes: i64,
}

impl Bands {
    /// Those of the only block that a sum reads; none where there is much to compute.
    pub(super) fn of(
        schedule: &mut Schedule,
        operands: &Operands,
        shape: &Shape,
        before: &[Block],
    ) -> Option<Self> {
        let (&[padded], &[.., lines, _]) = (before, operands.rows.as_slice()) else { return None };
        let is_plain = operands.form == Form::Depthwise && shape.columns.len() == 1;
        if !is_plain || shape.chunk > 0 {
            return None;
        }
        let each = schedule.loops(operands.sum).ok()?[lines];
        let moved = moves(schedule, each)?[1 - operands.vector]?.saturating_abs();
        Some(Self { padded, line_bytes: moved.saturating_mul(schedule.bits(padded) / 8) })
    }

    /// Fills up what a band of lines sees inside of the loops over tiles, of which the last is over lines. The loops around a band are
    /// given, outermost first.
    pub(super) fn compute(
        self,
        schedule: &mut Schedule,
        tiles: &[Loop],
        machine: &Machine,
    ) -> Option<Vec<Loop>> {
        let (&each, outer) = tiles.split_last()?;
        let band = self.best(schedule, outer, each, machine)?;
        let mut around = outer.to_vec();
        let is_done = attempt(schedule, |schedule| {
            if schedule.extent(each) != Some(band) {
                around.push(schedule.split(each, &[None, Some(band)], Tail::Perfect)?[0]);
            }
            let Some(&last) = around.last() else { return no_product() };
            schedule.compute_at(self.padded, last)
        });
        is_done.then_some(around)
    }

    /// The most lines that have room, and leave enough bands for all threads where images are too few.
    fn best(
        self,
        schedule: &mut Schedule,
        outer: &[Loop],
        each: Loop,
        machine: &Machine,
    ) -> Option<i64> {
        let extent = schedule.extent(each)?;
        let images = outer.iter().filter_map(|&each| schedule.extent(each));
        let images = images.fold(1, i64::saturating_mul);
        let enough = if machine.threads > 1 { STEPS * machine.threads } else { 1 };
        for lines in (1..=extent).rev().filter(|lines| extent % lines == 0) {
            let overlap = self.overlap(schedule, each, lines).ok()?;
            if overlap > MOST_OVERLAP {
                break;
            }
            let bytes = overlap * self.line_bytes.saturating_mul(lines) as f64;
            if bytes <= BYTES && images.max(extent / lines) >= enough {
                return Some(lines);
            }
        }
        None
    }

    /// How often each line would be filled up, in bands of so many.
    fn overlap(self, schedule: &mut Schedule, each: Loop, lines: i64) -> Result<f64> {
        let before = schedule.snapshot();
        let parts = schedule.split(each, &[None, Some(lines)], Tail::Perfect);
        let overlap = parts.map(|parts| schedule.overlap(parts[0], self.padded));
        schedule.restore(before);
        overlap
    }
}
