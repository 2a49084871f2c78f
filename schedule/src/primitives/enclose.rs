//! Several blocks as one.
//!
//! ```ir
//! for %i … {                                       for %i … { block "B_o" (%vi_o: spatial = %i) {
//!   for %j … { block "B" (%vi = %i, …) … }     =>    for %j … { block "B" (%vi = %vi_o, …) … }
//!   for %j … { block "C" (%vi = %i, …) … }           for %j … { block "C" (%vi = %vi_o, …) … }
//! }                                                } }
//! ```
//!
//! The blocks stand one behind the other, with nothing between. The new one has an iterator for each loop around all of them, so
//! these loops go through no reduction of theirs: what is inside is done in one step.

use tenon_plugin_api::ir::Attrs;

use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Handle, distinct};
use crate::tree::{BlockNode, Id, Iter, Node};

use super::kinds::independent;

/// Makes a block around others.
pub(super) fn enclose(schedule: &mut Schedule, blocks: &[Id]) -> Result<Vec<Handle>> {
    distinct(blocks, "a block")?;
    let Some(&first) = blocks.first() else { return Err(Refusal::new("no block is named")) };
    let stmts = statements(schedule, blocks)?;
    let loops = schedule.tree.loops_around(stmts[0]);
    for &each in &loops {
        independent(schedule, each, false)?;
    }
    let name = format!("{}_o", schedule.block_name(first));
    let (mut iters, mut pairs) = (Vec::new(), Vec::new());
    for &each in &loops {
        let iter = iterator(schedule, each)?;
        pairs.push((iter.binding, iter.var));
        iters.push(iter);
    }
    for &stmt in &stmts {
        schedule.substitute(stmt, pairs.iter().copied());
    }
    let hole = in_their_place(schedule, &stmts);
    let body = match stmts.as_slice() {
        &[only] => only,
        _ => schedule.tree.make(Node::Seq(stmts)),
    };
    let name = schedule.symbol(&name);
    let (predicate, init, attrs) = (None, None, Attrs::NONE);
    let node = BlockNode { name, iters, predicate, attrs, init, body };
    *schedule.tree.get_mut(hole) = Node::Block(node);
    schedule.tree.adopt(hole);
    Ok(vec![Block(hole).into()])
}

/// The statements that hold the blocks and no others, one behind the other.
fn statements(schedule: &Schedule, blocks: &[Id]) -> Result<Vec<Id>> {
    let &[first, ..] = blocks else { return Ok(Vec::new()) };
    if blocks.len() == 1 {
        return Ok(vec![first]);
    }
    let scope = schedule.tree.scope(first);
    if let Some(&other) = blocks.iter().find(|&&block| schedule.tree.scope(block) != scope) {
        return refuse(other, "it is of another scope than the first block");
    }
    let holds_all =
        |id: &Id| blocks.iter().all(|&block| block != *id && schedule.tree.is_inside(block, *id));
    let around = schedule.tree.ancestors(first).find(holds_all);
    let Some((around, Node::Seq(all))) = around.map(|id| (id, schedule.tree.get(id))) else {
        return refuse(first, "the blocks do not stand one behind the other");
    };
    let mut stmts: Vec<Id> = Vec::new();
    for &block in blocks {
        let stmt = schedule.tree.child_towards(around, block).unwrap_or(block);
        if !stmts.contains(&stmt) {
            stmts.push(stmt);
        }
    }
    let place = |stmt: &Id| all.iter().position(|other| other == stmt).unwrap_or(0);
    stmts.sort_by_key(place);
    let first = place(&stmts[0]);
    if let Some((between, _)) = all[first..].iter().zip(&stmts).find(|(a, b)| a != b) {
        return refuse(*between, "this stands between the blocks");
    }
    for &stmt in &stmts {
        schedule.only_blocks(stmt)?;
        let inside = match schedule.tree.as_block(stmt) {
            Some(_) => vec![stmt],
            None => schedule.tree.blocks_below(stmt),
        };
        if let Some(&other) = inside.iter().find(|block| !blocks.contains(block)) {
            return refuse(other, "this block stands among them and is not named");
        }
    }
    Ok(stmts)
}

/// An iterator that is bound to a loop.
fn iterator(schedule: &mut Schedule, each: Id) -> Result<Iter> {
    let Some(node) = schedule.tree.as_for(each).cloned() else {
        return refuse(each, "it is no loop");
    };
    let mut space = schedule.space();
    let ends = [node.min, node.extent].map(|end| space.read(schedule.body(), end));
    if !ends.iter().all(|end| space.is_symbolic(end)) {
        return refuse(each, "where this loop begins, or ends, depends on another one");
    }
    let name = format!("v{}_o", schedule.var_name(node.var));
    let (var, kind) = (schedule.index_var(&name), schedule.kind_term(false));
    Ok(Iter { var, kind, binding: node.var, min: node.min, extent: node.extent })
}

/// Takes statements of one list out of it; what is in their place.
fn in_their_place(schedule: &mut Schedule, stmts: &[Id]) -> Id {
    let hole = schedule.tree.add(Node::Gone);
    let around = schedule.tree.parent(stmts[0]);
    let Some(around) = around.filter(|_| stmts.len() > 1) else {
        schedule.tree.replace(stmts[0], hole);
        return hole;
    };
    let Node::Seq(all) = schedule.tree.get_mut(around) else { return hole };
    let first = all.iter().position(|&stmt| stmt == stmts[0]).unwrap_or(0);
    all.splice(first..first + stmts.len(), [hole]);
    let is_only = all.len() == 1;
    schedule.tree.adopt(around);
    if is_only {
        schedule.tree.replace(around, hole);
        *schedule.tree.get_mut(around) = Node::Gone;
    }
    hole
}
