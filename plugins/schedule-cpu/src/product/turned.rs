//! A copy of the second matrix of a product that lies along the sum, so that its columns lie side by side.
//!
//! ```ir
//! for %i … { for %j … { for %r … {               for %j … { for %r … { block "b_copy" { b_copy[%r, %j] = b[%j, %r] } } }
//!   block "acc" {                          =>    for %i … { for %j … { for %r … {
//!     acc[%i, %j] += a[%i, %r] * b[%j, %r]         block "acc" { acc[%i, %j] += a[%i, %r] * b_copy[%r, %j] } } } }
//! } } } }
//! ```
//!
//! Sums in vectors along the sum add up their lanes for each result, which takes as long as several elements take to be copied. Where
//! many rows share a short sum, the copy is sooner made.

use tenon_schedule::{Block, Loop, Machine, Memory, Result, Schedule};

use super::no_product;
use super::operands::{Form, Operands, moves};
use crate::{attempt, transposes};

/// Elements that are copied within the nearer caches while the lanes of one sum are added up; from farther away it is one. Measured
/// of products of 1 to 197 rows by sums of 16 to 768 elements, in vectors of 512 bits.
const COPIED: i64 = 4;

/// Copies the matrix that has the columns of a product whose operands lie along the sum, where that is the shorter way; the block that
/// copies.
pub(super) fn columns_beside(
    schedule: &mut Schedule,
    [sum, out]: [Block; 2],
    lanes: i64,
    machine: &Machine,
) -> Option<Block> {
    let operands = Operands::of(schedule, sum, out, lanes).ok()?;
    if operands.form != Form::Dots || !is_shorter(schedule, &operands, machine) {
        return None;
    }
    let mut copy = None;
    let is_done = attempt(schedule, |schedule| {
        copy = Some(turn(schedule, &operands, lanes)?);
        match Operands::of(schedule, sum, out, lanes)?.form {
            Form::Columns => Ok(()),
            _ => no_product(),
        }
    });
    copy.filter(|_| is_done)
}

/// Whether rows share each element that is copied so often that their sums take longer to be added up.
fn is_shorter(schedule: &Schedule, operands: &Operands, machine: &Machine) -> bool {
    let rows = operands.rows.iter().map(|&at| operands.extent(at));
    let rows: i64 = rows.product();
    let is_known = operands.unknown.is_empty();
    let column = operands.extent(operands.column);
    let bytes = column.saturating_mul(operands.depth) * schedule.bits(operands.sum) / 8;
    let copied = if bytes <= machine.caches[1] / 2 { COPIED } else { 1 };
    is_known && rows.saturating_mul(copied) > operands.depth
}

fn turn(schedule: &mut Schedule, operands: &Operands, lanes: i64) -> Result<Block> {
    let names = schedule.reads(operands.sum);
    let (Some(buffer), 2) = (names.get(operands.vector), names.len()) else { return no_product() };
    let loops = schedule.loops(operands.sum)?;
    let kept = operands.extents.len();
    let is_moved = |at: &usize| {
        *at != operands.column
            && moves(schedule, loops[*at]).is_none_or(|found| found[operands.vector] != Some(0))
    };
    let outer = (0..kept).filter(is_moved);
    let order: Vec<String> = outer
        .chain(kept..loops.len())
        .chain([operands.column])
        .map(|at| format!("i{at}"))
        .collect();
    let all: Vec<String> = (0..loops.len()).map(|at| format!("i{at}")).collect();
    let map = format!("({}) -> ({})", all.join(", "), order.join(", "));
    let copy = schedule.reindex_cache_read(operands.sum, buffer, Memory::Global, &map)?;
    attempt(schedule, |schedule| in_squares(schedule, copy, lanes));
    Ok(copy)
}

/// Lets the copy go from column to column, and so from one place to that beside it, where that can be done in squares.
fn in_squares(schedule: &mut Schedule, copy: Block, lanes: i64) -> Result<()> {
    let loops = schedule.loops(copy)?;
    let writes_beside = |each: &Loop| {
        let strides = schedule.strides(*each);
        strides.iter().any(|stride| stride.is_store && stride.elements == Some(1))
    };
    let Some(column) = loops.iter().rposition(writes_beside) else { return no_product() };
    let mut order = loops[column..].to_vec();
    order.rotate_left(1);
    schedule.reorder(&order)?;
    if transposes::in_squares(schedule, copy, lanes) { Ok(()) } else { no_product() }
}
