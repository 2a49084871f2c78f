//! Axes that change places, in squares.
//!
//! ```ir
//! for %c in 0..16 {                                     for %p_0 in 0..49 {
//!   for %p in 0..3136 {                           =>      for %c in 0..16 { for %p_1 in 0..8 { for %p_2 in 0..8 vectorized {
//!     out[%c * 3136 + %p] = a[%p * 16 + %c] } }             out[%c * 3136 + …] = a[… * 16 + %c] } } } }
//! ```
//!
//! Steps of the innermost loop write side by side, and read one element each of lines that lie apart. An outer loop reads the
//! neighbours: around a short piece of the innermost one it finds these lines in the nearest cache. Vectors are put together of
//! elements, since that many stores of one element each take longer.

use tenon_schedule::{Block, Loop, Refusal, Result, Schedule, Tail};

use crate::attempt;

/// Steps of the innermost loop that are a piece of it, at most: lines of so many, on as many pages, are at hand.
const PIECE: i64 = 64;
/// Lanes of a vector that is put together of elements that lie apart, at most.
const WIDTH: i64 = 8;
/// Neighbours that an outer loop reads together, at most.
const NEIGHBOURS: i64 = 64;

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
        let (Some(extent), Some((each, steps))) = (schedule.extent(inner), reading) else {
            return no_transpose();
        };
        let (piece, width) = piece(extent, lanes.min(WIDTH))?;
        let mut inside = inner;
        if piece < extent {
            let around = schedule.split(each, &[None, Some(steps)], Tail::Perfect)?[1];
            let pieces = schedule.split(inner, &[None, Some(piece)], Tail::Perfect)?;
            let others = schedule.own_loops(block)?.into_iter();
            let others = others.skip_while(|&other| other != around).skip(1);
            let order: Vec<Loop> =
                others.filter(|other| *other != pieces[1]).chain([around, pieces[1]]).collect();
            schedule.reorder(&order)?;
            inside = pieces[1];
        }
        let parts = schedule.split(inside, &[None, Some(width)], Tail::Perfect)?;
        schedule.vectorize(parts[1])
    })
}

/// The longest piece of whole steps of a loop, and the vectors into which it divides.
fn piece(extent: i64, widest: i64) -> Result<(i64, i64)> {
    let widths = [widest, widest / 2].into_iter().filter(|&width| width > 1);
    let mut pieces = widths.filter_map(|width| {
        let mut sizes = (1..=PIECE.min(extent)).rev();
        Some((sizes.find(|size| extent % size == 0 && size % width == 0)?, width))
    });
    pieces.next().map_or_else(no_transpose, Ok)
}

/// Whether neighbouring steps write side by side and read what lies apart.
fn reads_apart(schedule: &Schedule, inner: Loop) -> bool {
    let strides = schedule.strides(inner);
    let is_beside = strides.iter().all(|each| !each.is_store || each.elements == Some(1));
    is_beside && strides.iter().any(|each| !each.is_store && each.elements.is_some_and(is_apart))
}

fn is_apart(elements: i64) -> bool {
    elements.abs() > 1
}

/// The most steps of a loop, from a multiple of them on, that write what lies apart and read side by side.
fn neighbours(schedule: &mut Schedule, each: Loop) -> Option<i64> {
    let extent = schedule.extent(each)?;
    let mut sizes = (2..=NEIGHBOURS.min(extent)).rev().filter(|steps| extent % steps == 0);
    sizes.find(|&steps| {
        let before = schedule.snapshot();
        let parts = schedule.split(each, &[None, Some(steps)], Tail::Perfect);
        let strides = parts.map(|parts| schedule.strides(parts[1])).unwrap_or_default();
        schedule.restore(before);
        let mut stores = strides.iter().filter(|each| each.is_store);
        stores.all(|each| each.elements.is_some_and(is_apart))
            && strides.iter().any(|each| !each.is_store && each.elements == Some(1))
    })
}

fn no_transpose<T>() -> Result<T> {
    Err(Refusal::new("no axes change places, or rows are short"))
}
