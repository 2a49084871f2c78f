//! The order in which the steps of a reduction come: that of floats may have to be kept, and some depend on what was before.

use tenon_plugin_api::ir::{BinaryOp, Expr, View};

use crate::exprs::mentions;
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Loop, Schedule};
use crate::tree::{Id, Node};

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

/// Where loops of a nest get another order, `before` and `after`, outermost first: refuses it where that changes what is reduced.
pub(super) fn check_loops(schedule: &Schedule, before: &[Id], after: &[Id]) -> Result<()> {
    let Some(&top) = before.first() else { return Ok(()) };
    for block in schedule.tree.blocks_below(top) {
        let is_reduced = schedule.reducing(Block(block));
        let is_of_sum = |id: &&Id| is_reduced(Loop(**id));
        if !before.iter().filter(is_of_sum).eq(after.iter().filter(is_of_sum)) {
            check_changed(schedule, block)?;
        }
    }
    Ok(())
}

/// Refuses to run the steps of a reduction in another order where that changes what it is.
pub(super) fn check_changed(schedule: &Schedule, block: Id) -> Result<()> {
    if !combines(schedule, block) {
        return refuse(
            block,
            "a step of it depends on those before in another way than as one term of a sum, a product, a minimum or a maximum",
        );
    }
    check(schedule, block)
}

/// Whether the steps of a reduction may come in any order, but for rounding: each of its stores combines an element with a value that
/// nothing of the reduction goes into.
fn combines(schedule: &Schedule, block: Id) -> bool {
    let Some(body) = schedule.tree.as_block(block).map(|block| block.body) else { return false };
    let written = schedule.buffers(block, true);
    let is_own = |expr: Expr, target: Expr, at: &[Expr]| match schedule.view(expr) {
        View::Load { buffer, indices } => buffer == target && indices.iter().eq(at.iter().copied()),
        _ => false,
    };
    schedule.tree.walk(body).into_iter().all(|stmt| match schedule.tree.get(stmt) {
        Node::Seq(_) | Node::Gone => true,
        Node::Store { buffer, value, indices } => {
            let View::Binary { op, a, b } = schedule.view(*value) else { return false };
            let term = match (is_own(a, *buffer, indices), is_own(b, *buffer, indices)) {
                (true, _) => b,
                (_, true) => a,
                _ => return false,
            };
            let is_known =
                matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
            is_known && !mentions(&schedule.rw, term, &written)
        }
        _ => false,
    })
}
