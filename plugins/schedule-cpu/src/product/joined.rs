//! Rows that lie in memory as one row.
//!
//! ```ir
//! for %h in 0..7 { for %w in 0..7 { … } }   =>   for %p in 0..49 { … }
//! ```
//!
//! Pixels of a convolution of one tap are rows of a matrix, whatever line of the image they are on. In lines of seven pixels a tile is
//! seven rows high or less; in all of them, as high as registers allow, with but one tile or two that are lower. So are those of lines
//! of which nobody knows how long they are. Lines of more rows than there are registers are cut into so many tiles that joining them
//! would gain less than it takes to compile.

use tenon_schedule::{Block, Machine, Result, Schedule};

use super::operands::{Form, Operands};
use crate::attempt;

/// Makes the last two loops over rows one, where each step of the outer moves all that is read and written as far as all steps of the
/// inner. Where that is done, the steps of the inner are given if they are known: so many rows are a line.
pub(super) fn join(
    schedule: &mut Schedule,
    blocks: [Block; 2],
    lanes: i64,
    machine: &Machine,
) -> Result<Option<Option<i64>>> {
    let [sum, out] = blocks;
    let operands = Operands::of(schedule, sum, out, lanes)?;
    let &[.., outer, inner] = operands.rows.as_slice() else { return Ok(None) };
    let is_known = !operands.is_unknown(outer) && !operands.is_unknown(inner);
    let line = operands.extent(inner);
    let is_long = !operands.is_unknown(inner) && line >= machine.registers;
    if operands.form != Form::Columns || inner != outer + 1 || is_long {
        return Ok(None);
    }
    let is_joined = attempt(schedule, |schedule| {
        as_one_row(schedule, blocks, outer)?;
        let joined = Operands::of(schedule, sum, out, lanes)?;
        match joined.form == operands.form && joined.rows.last() == Some(&outer) {
            true => Ok(()),
            false => super::no_product(),
        }
    });
    Ok(is_joined.then_some(is_known.then_some(line)))
}

/// Makes one loop of that of number `outer` and the next around a sum and around its result, and one axis of theirs, where all that both
/// read and write goes through memory as one loop would.
pub(crate) fn as_one_row(schedule: &mut Schedule, blocks: [Block; 2], outer: usize) -> Result<()> {
    for block in blocks {
        let loops = schedule.loops(block)?;
        match loops.get(outer..) {
            Some(&[first, second, ..]) if schedule.are_one_row(first, second) => {}
            _ => return super::no_product(),
        }
    }
    for block in blocks {
        schedule.join_iterators(block, outer)?;
    }
    match schedule.written(blocks[0]) {
        Some(buffer) => schedule.join_axes(blocks[0], &buffer, outer),
        None => Ok(()),
    }
}
