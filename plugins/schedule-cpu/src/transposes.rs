//! Axes that change places, in squares.
//!
//! ```ir
//! for %c in 0..16 {                                     for %p_0 in 0..49 {
//!   for %p in 0..3136 {                           =>      for %c in 0..16 { for %p_1 in 0..8 { for %p_2 in 0..8 vectorized {
//!     out[%c * 3136 + %p] = a[%p * 16 + %c] } }             out[%c * 3136 + …] = a[… * 16 + %c] } } } }
//! ```
//!
//! Steps of the innermost loop write side by side, and read one element each of lines that lie apart. An outer loop reads the
//! neighbours: around a short piece of the innermost one it finds these lines in the nearest cache, a shorter one where they meet in few
//! of its sets. Vectors are put together of
//! elements, since that many stores of one element each take longer. Loops whose number of steps is not known, or has no divisor of
//! use, are cut into such pieces and what is left behind them, which runs by itself.

use tenon_schedule::{Block, Loop, Refusal, Result, Schedule, Tail};

use crate::attempt;
use crate::caches::places;

/// Steps of the innermost loop that are a piece of it, at most: lines of so many, on as many pages, are at hand.
const PIECE: i64 = 64;
/// Lanes of a vector that is put together of elements that lie apart, at most.
const WIDTH: i64 = 8;
/// Neighbours that an outer loop reads together, at most.
const NEIGHBOURS: i64 = 64;
/// Lines that a set of the nearest cache has room for, at least.
const WAYS: i64 = 8;
/// Steps of either loop where their number is not known or has no good divisor: a line of memory. Those that are left run by
/// themselves.
const SQUARE: i64 = 16;
/// Neighbours of a loop that divide it: fewer are not worth it where the loop can be cut.
const FEW: i64 = 4;

/// Lets the loop that reads neighbours run around short pieces of the innermost one, which run in vectors; whether it was done.
pub(crate) fn in_squares(schedule: &mut Schedule, block: Block, lanes: i64) -> bool {
    attempt(schedule, |schedule| {
        let loops = schedule.own_loops(block)?;
        let Some((&inner, outer)) = loops.split_last() else { return no_transpose() };
        let is_serial = loops.iter().all(|&each| schedule.is_serial(each));
        if schedule.is_reduction(block) || !is_serial || !reads_apart(schedule, inner) {
            return no_transpose();
        }
        let reading =
            outer.iter().rev().find_map(|&each| Some((each, neighbours(schedule, each)?)));
        let Some((each, neighbours)) = reading else { return no_transpose() };
        let most = lines_at_hand(schedule, block, inner).min(PIECE);
        let (piece, width) = piece(schedule.extent(inner), lanes.min(WIDTH), most)?;
        let mut inside = inner;
        if Some(piece.steps) != schedule.extent(inner) {
            inside = piece.of(schedule, block, inner)?;
            let around = neighbours.of(schedule, block, each)?;
            let others = schedule.own_loops(block)?.into_iter();
            let others = others.skip_while(|&other| other != around).skip(1);
            let order: Vec<Loop> =
                others.filter(|other| *other != inside).chain([around, inside]).collect();
            schedule.reorder(&order)?;
        }
        let parts = schedule.split(inside, &[None, Some(width)], Tail::Perfect)?;
        schedule.vectorize(parts[1])
    })
}

/// A part of a loop that runs as a loop of its own.
struct Part {
    steps: i64,
    /// Whether the loop may have some more steps than there are whole parts.
    is_cut: bool,
}

impl Part {
    fn whole(steps: i64) -> Self {
        Self { steps, is_cut: false }
    }

    const CUT: Self = Self { steps: SQUARE, is_cut: true };

    /// Cuts a loop around a block into such parts; the loop of one is given, where the whole loop stood. The loop over parts stands
    /// outermost where some steps are left, and these in a nest of their own.
    fn of(&self, schedule: &mut Schedule, block: Block, each: Loop) -> Result<Loop> {
        let factors = [None, Some(self.steps)];
        if !self.is_cut {
            return Ok(schedule.split(each, &factors, Tail::Perfect)?[1]);
        }
        let mut outer = schedule.own_loops(block)?;
        let Some(at) = outer.iter().position(|&other| other == each) else { return no_transpose() };
        outer.truncate(at + 1);
        // Outermost, so that no loop holds both.
        outer.rotate_right(1);
        if at > 0 {
            schedule.reorder(&outer)?;
        }
        let parts = schedule.split(each, &factors, Tail::Cut)?;
        if at > 0 {
            schedule.reorder(&[&outer[1..], &[parts[1]]].concat())?;
        }
        Ok(parts[1])
    }
}

/// The longest piece of whole steps of a loop, and the vectors into which it divides.
fn piece(extent: Option<i64>, widest: i64, most: i64) -> Result<(Part, i64)> {
    let widths = [widest, widest / 2].into_iter().filter(|&width| width > 1);
    let known = extent.and_then(|extent| {
        let mut pieces = widths.filter_map(|width| {
            let mut sizes = (1..=most.min(extent)).rev();
            Some((sizes.find(|size| extent % size == 0 && size % width == 0)?, width))
        });
        pieces.next().map(|(steps, width)| (Part::whole(steps), width))
    });
    let can_be_cut = widest > 1 && extent.is_none_or(|extent| extent > SQUARE);
    match known {
        Some(known) => Ok(known),
        None if can_be_cut => Ok((Part::CUT, widest)),
        None => no_transpose(),
    }
}

/// Lines that steps of a loop read which the nearest cache keeps together: those that lie a multiple of some thousand bytes apart meet in
/// few of its sets.
fn lines_at_hand(schedule: &Schedule, block: Block, inner: Loop) -> i64 {
    let bytes = schedule.bits_read(block) / 8;
    let apart = schedule.strides(inner).into_iter().filter(|each| !each.is_store);
    let meet = |elements: i64| places(elements.saturating_mul(bytes));
    let sets = apart.filter_map(|each| each.elements).filter(|&it| is_apart(Some(it))).map(meet);
    sets.min().map_or(PIECE, |sets| (WAYS * sets).max(WIDTH))
}

/// Whether neighbouring steps write side by side and read what lies apart.
fn reads_apart(schedule: &Schedule, inner: Loop) -> bool {
    let strides = schedule.strides(inner);
    let is_beside = strides.iter().all(|each| !each.is_store || each.elements == Some(1));
    is_beside && strides.iter().any(|each| !each.is_store && is_apart(each.elements))
}

/// Whether steps so many elements apart are no neighbours; one that is not known may be the length of a row.
fn is_apart(elements: Option<i64>) -> bool {
    elements.is_none_or(|elements| elements.abs() > 1)
}

/// The most steps of a loop, from a multiple of them on, that write what lies apart and read side by side.
fn neighbours(schedule: &mut Schedule, each: Loop) -> Option<Part> {
    let extent = schedule.extent(each);
    let sizes = |extent: i64| (2..=NEIGHBOURS.min(extent)).rev().filter(move |it| extent % it == 0);
    let known = extent.and_then(|extent| {
        sizes(extent).find(|&steps| {
            let before = schedule.snapshot();
            let parts = schedule.split(each, &[None, Some(steps)], Tail::Perfect);
            let is_good = parts.is_ok_and(|parts| reads_neighbours(schedule, parts[1]));
            schedule.restore(before);
            is_good
        })
    });
    let can_be_cut =
        extent.is_none_or(|extent| extent > SQUARE) && reads_neighbours(schedule, each);
    match known {
        Some(steps) if steps >= FEW || !can_be_cut => Some(Part::whole(steps)),
        _ => can_be_cut.then_some(Part::CUT),
    }
}

fn reads_neighbours(schedule: &Schedule, each: Loop) -> bool {
    let strides = schedule.strides(each);
    strides.iter().all(|each| !each.is_store || is_apart(each.elements))
        && strides.iter().any(|each| !each.is_store && each.elements == Some(1))
}

fn no_transpose<T>() -> Result<T> {
    Err(Refusal::new("no axes change places, or rows are short"))
}
