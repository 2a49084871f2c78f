//! The order in which the terms of a reduction are added, where that is to be kept.

use tenon_plugin_api::ir::{BinaryOp, Expr};

use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Loop, Schedule};
use crate::tree::Id;

use super::rfactor::recognize;

/// Refuses to change the order of a reduction where it is to be kept, and where it makes a difference: of sums and products of
/// floats, which are rounded.
pub(super) fn check(schedule: &Schedule, block: Id) -> Result<()> {
    let is_float = |buffer: &Expr| {
        let body = schedule.body();
        let tensor = body.ty(*buffer).and_then(|ty| body.terms().tensor(ty));
        tensor.is_some_and(|(dtype, _)| dtype.is_float())
    };
    if !schedule.keeps_order || !schedule.buffers(block, true).iter().any(is_float) {
        return Ok(());
    }
    match recognize(schedule, block).map(|reduction| reduction.op) {
        Ok(BinaryOp::Min | BinaryOp::Max) => Ok(()),
        _ => refuse(block, "its terms are to be added in the order of the program"),
    }
}

/// The same where loops of a nest get another order: `before` and `after`, outermost first.
pub(super) fn check_loops(schedule: &Schedule, before: &[Id], after: &[Id]) -> Result<()> {
    let Some(&top) = before.first().filter(|_| schedule.keeps_order) else { return Ok(()) };
    for block in schedule.tree.blocks_below(top) {
        let is_of_sum = |id: &&Id| schedule.is_reduced(Block(block), Loop(**id));
        if !before.iter().filter(is_of_sum).eq(after.iter().filter(is_of_sum)) {
            check(schedule, block)?;
        }
    }
    Ok(())
}
