//! Loops of one nest in another order.
//!
//! ```ir
//! for %i in 0..8 { for %j in 0..4 { … } }      =>      for %j in 0..4 { for %i in 0..8 { … } }
//! ```
//!
//! The loops take the places that they had, in the new order; others stay where they are. The steps of a reduction may be
//! reordered: its sums may then differ in the last place.

use crate::index::Fit;
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{For, Id, Node};

use super::kinds::are_steps_apart;
use super::order;

pub(super) static REORDER: Primitive = Primitive {
    name: "reorder",
    version: 1,
    summary: "Puts loops of one nest in the order in which they are named, outermost first.",
    params: &[Param::new("loops", Kind::Loops)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let loops = args.ids(0);
    crate::trace::distinct(&loops, "a loop")?;
    let Some(&deepest) = loops.iter().max_by_key(|&&id| schedule.tree.ancestors(id).count()) else {
        return Ok(Vec::new());
    };
    // Where the loops stand now, outermost first.
    let mut chain = vec![deepest];
    chain.extend(schedule.tree.ancestors(deepest));
    let mut places: Vec<Id> = chain.iter().filter(|id| loops.contains(id)).copied().collect();
    places.reverse();
    if places.len() < loops.len() {
        let stray = loops.iter().find(|id| !places.contains(id)).copied().unwrap_or(deepest);
        return refuse(stray, "the loops are not inside of one another");
    }
    let top = places[0];
    check_nest(schedule, top, deepest)?;
    check_blocks(schedule, top)?;
    check_sharing(schedule, top, &chain)?;
    let nodes: Vec<For> =
        loops.iter().filter_map(|&id| schedule.tree.as_for(id)).cloned().collect();
    check_ranges(schedule, top, deepest, &places, &nodes)?;
    let nest = chain.len() - chain.iter().position(|&id| id == top).map_or(0, |at| at + 1);
    let before: Vec<Id> = chain.iter().rev().skip(nest).copied().collect();
    let place = |id: &Id| places.iter().position(|place| place == id);
    let after = before.iter().map(|id| place(id).map_or(*id, |at| loops[at]));
    order::check_loops(schedule, &before, &after.collect::<Vec<Id>>())?;
    move_to(schedule, &places, &loops);
    Ok(Vec::new())
}

/// The loops move: `loops` into the `places` of others. A loop keeps its number.
fn move_to(schedule: &mut Schedule, places: &[Id], loops: &[Id]) {
    // What is directly inside each place, before anything moves.
    let bodies: Vec<Id> = places.iter().map(|&id| schedule.tree.for_mut(id).body).collect();
    let holes: Vec<Id> = places
        .iter()
        .map(|&place| {
            let hole = schedule.tree.add(Node::Gone);
            schedule.tree.replace(place, hole);
            hole
        })
        .collect();
    // A body that is itself a place is now the hole that took it.
    for ((&hole, &body), &each) in holes.iter().zip(&bodies).zip(loops) {
        let body = match places.iter().position(|&place| place == body) {
            Some(at) => holes[at],
            None => body,
        };
        schedule.tree.for_mut(each).body = body;
        schedule.tree.adopt(each);
        schedule.tree.replace(hole, each);
        // The hole may be the body of a loop that was moved before.
        for &moved in loops {
            let node = schedule.tree.for_mut(moved);
            if node.body == hole {
                node.body = each;
            }
            schedule.tree.adopt(moved);
        }
    }
}

/// Between the loops there is nothing but loops, each the only statement in the one around it.
fn check_nest(schedule: &Schedule, top: Id, deepest: Id) -> Result<()> {
    let mut id = deepest;
    while id != top {
        let Some(parent) = schedule.tree.parent(id) else { break };
        match schedule.tree.get(parent) {
            Node::For(_) => id = parent,
            Node::Block(_) => return refuse(parent, "the loops are of different scopes"),
            _ => return refuse(parent, "between the loops there is more than loops"),
        }
    }
    Ok(())
}

/// The blocks below a loop may run in any order, but for what is reduced.
pub(super) fn check_blocks(schedule: &Schedule, top: Id) -> Result<()> {
    schedule.only_blocks(top)?;
    for block in schedule.tree.blocks_below(top) {
        let Some(node) = schedule.tree.as_block(block) else { continue };
        let is_known = |kind| schedule.is_spatial(kind) || schedule.is_reduce(kind);
        if !node.iters.iter().all(|iter| is_known(iter.kind)) {
            return refuse(block, "it has an iterator that is neither spatial nor of a reduction");
        }
        // What is complete may run in any order, however its iterators are bound; a reduction is to run once each.
        let overlap = node.init.is_none();
        if !overlap && let Some(why) = schedule.why_not_affine(block, Fit::Gaps) {
            return refuse(block, why);
        }
        // That an iterator is spatial is a claim; that no step reads another's result is looked at.
        let why = match overlap {
            true if schedule.is_update(block, &[block]) => None,
            true => schedule.why_incomplete(block, &[block]),
            false => schedule.why_no_reduction(block, &[block]),
        };
        if let Some(why) = why {
            return refuse(block, format!("its steps depend on their order: {why}"));
        }
    }
    Ok(())
}

/// Several blocks share a buffer that one of them writes only where each step of every loop has its own part of it: then what
/// depends on one another stays in one step.
fn check_sharing(schedule: &Schedule, top: Id, chain: &[Id]) -> Result<()> {
    let blocks = schedule.tree.blocks_below(top);
    let shares = |&block: &Id| {
        let written = schedule.buffers(block, true);
        blocks.iter().filter(|&&other| other != block).any(|&other| {
            let mut met = schedule.buffers(other, false);
            met.extend(schedule.buffers(other, true));
            met.iter().any(|buffer| written.contains(buffer))
        })
    };
    if !blocks.iter().any(shares) {
        return Ok(());
    }
    for &id in chain.iter().filter(|&&id| schedule.tree.is_inside(id, top)) {
        let var = schedule.tree.as_for(id).map(|each| each.var);
        if var.is_some_and(|var| !are_steps_apart(schedule, id, var)) {
            return refuse(
                id,
                "its blocks share a buffer, of which its steps do not have parts of their own",
            );
        }
    }
    Ok(())
}

/// No range reads a loop that would come inside of it.
fn check_ranges(
    schedule: &Schedule,
    top: Id,
    deepest: Id,
    places: &[Id],
    nodes: &[For],
) -> Result<()> {
    let mut chain = vec![deepest];
    chain.extend(schedule.tree.ancestors(deepest).take_while(|&id| id != top));
    if deepest != top {
        chain.push(top);
    }
    chain.reverse();
    let order: Vec<For> = chain
        .iter()
        .filter_map(|id| match places.iter().position(|place| place == id) {
            Some(at) => Some(nodes[at].clone()),
            None => schedule.tree.as_for(*id).cloned(),
        })
        .collect();
    let mut space = schedule.space();
    for (at, each) in order.iter().enumerate() {
        let range = [each.min, each.extent].map(|expr| space.read(schedule.body(), expr));
        let inside = |inner: &For| range.iter().any(|sum| space.mentions(sum, inner.var));
        if order[at + 1..].iter().any(inside) {
            let id = chain
                .iter()
                .copied()
                .find(|&id| schedule.tree.as_for(id).is_some_and(|node| node.var == each.var));
            return refuse(
                id.unwrap_or(top),
                "its range depends on a loop that would come inside of it",
            );
        }
    }
    Ok(())
}
