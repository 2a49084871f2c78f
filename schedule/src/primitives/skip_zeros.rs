//! The steps of a sum that add zero.
//!
//! ```ir
//! block "B" (…) init { %B[%vi] = 0.0 } {                       block "B" (…) init { %B[%vi] = 0.0 } {
//!   %B[%vi] = %B[%vi] + select(%vk < 4, %A[%vk], 0.0) }   =>     if %vk < 4 { %B[%vi] = %B[%vi] + %A[%vk] } }
//! ```
//!
//! The least and the largest that the condition holds an index between are left out of the term:
//!
//! ```ir
//! select(%vk >= 1, %A[max(%vk - 1, 0)], 0.0)      =>      if %vk >= 1 { … %A[%vk - 1] }
//! ```
//!
//! A sum that starts from zero is never the negative zero, to which the addition of zero would be a change. What is asked moves outside of
//! the loops that do not change it when blocks are lowered.

use tenon_plugin_api::ir::{BinaryOp, Build, Expr, View};
use tenon_plugin_api::pass::{Calls, Rewriter};

use crate::exprs::Replacing;
use crate::index::Sum;
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{Id, Node};

use super::rfactor::recognize;

pub(super) static SKIP_ZEROS: Primitive = Primitive {
    name: "skip_zeros",
    version: 1,
    summary: "Leaves out the steps of a sum whose term is zero by a choice.",
    params: &[Param::new("block", Kind::Block)],
    apply,
};

impl Schedule {
    /// Whether steps of a block are left out by [`Schedule::skip_zeros`].
    pub fn skips_zeros(&self, block: Block) -> bool {
        let body = self.tree.as_block(block.0).map(|block| self.tree.get(block.body));
        matches!(body, Some(Node::If { otherwise: None, .. }))
    }

    /// What a sum adds in the steps that [`Schedule::skip_zeros`] leaves.
    pub(crate) fn term_unless_zero(&self, block: Block) -> Option<Expr> {
        Choice::of(self, block.0).ok().map(|choice| choice.then)
    }
}

/// A term that is zero where a condition does not hold.
struct Choice {
    cond: Expr,
    term: Expr,
    /// What it is otherwise than zero.
    then: Expr,
}

impl Choice {
    /// What a sum that starts from zero adds.
    fn of(schedule: &Schedule, id: Id) -> Result<Self> {
        let reduction = recognize(schedule, id)?;
        let View::Select { cond, then, otherwise } = schedule.view(reduction.term) else {
            return refuse(id, "its term is no choice");
        };
        let number = |expr| match schedule.view(expr) {
            View::Float(value) => Some(value),
            View::Int(value) => Some(value as f64),
            _ => None,
        };
        let is_zero = number(otherwise) == Some(0.0);
        let is_positive = number(reduction.identity).is_some_and(f64::is_sign_positive);
        if reduction.op != BinaryOp::Add || !is_zero || !is_positive {
            return refuse(id, "it is no sum from zero on whose term is zero otherwise");
        }
        Ok(Self { cond, term: reduction.term, then })
    }
}

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let Choice { cond, term, then } = Choice::of(schedule, id)?;
    let Some(body) = schedule.tree.as_block(id).map(|block| block.body) else {
        return Ok(Vec::new());
    };
    let hole = schedule.tree.add(Node::Gone);
    schedule.tree.replace(body, hole);
    *schedule.tree.get_mut(hole) = Node::If { cond, then: body, otherwise: None };
    schedule.tree.adopt(hole);
    let (mut space, mut known) = (schedule.space(), schedule.space());
    let conditions = schedule.conjuncts(cond);
    let slacks: Vec<Sum> =
        conditions.iter().filter_map(|&part| schedule.slack(&mut known, part)).collect();
    schedule.substitute(body, [(term, then)]);
    let within = |rw: &mut Rewriter, old: Expr, operands: &[Expr]| {
        let (View::Binary { op, .. }, &[a, b]) = (rw.view(old), operands) else { return None };
        let [of_a, of_b] = [a, b].map(|side| known.read(rw.body(), side));
        let (less, more) = (of_b.sub(&of_a), of_a.sub(&of_b));
        match op {
            BinaryOp::Max if slacks.contains(&more) => Some(a),
            BinaryOp::Min if slacks.contains(&less) => Some(a),
            _ => None,
        }
    };
    schedule.rewrite(body, &mut Replacing::default(), &mut space, within);
    Ok(Vec::new())
}
