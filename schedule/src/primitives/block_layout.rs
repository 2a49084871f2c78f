//! The iterators of a block, and the loops around it, by a map of them.
//!
//! ```ir
//! for %i in 0..8 { for %j in 0..16 {                       for %ax0 in 0..128 {
//!     block "B" (%vi: spatial = %i,                  =>      block "B" (%v0: spatial = %ax0) {
//!                %vj: spatial = %j) {                          %B[%v0 floordiv 16, %v0 % 16] = … } }
//!       %B[%vi, %vj] = … } } }
//!                                 (i, j) -> (i * 16 + j)
//! ```
//!
//! Each iterator of the block is the variable of a loop around it, and the map takes all of their values to a box, each to a place of its
//! own. So every instance runs as often as before; that they may come in another order is looked at as for `reorder`.

use tenon_plugin_api::ir::{Attrs, Expr, LoopKind, Symbol};

use crate::index::{AtomId, Range, Space, Sum, is_injective};
use crate::refusal::{Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, IndexMap, Kind, Param, Primitive};
use crate::tree::{For, Id, Iter, Node};

use super::fuse::plain;
use super::order;
use super::reorder::check_blocks;

pub(super) static TRANSFORM_BLOCK_LAYOUT: Primitive = Primitive {
    name: "transform_block_layout",
    version: 1,
    summary: "Makes other iterators of those of a block, told by a map, and other loops of those around it; the loops.",
    params: &[Param::new("block", Kind::Block), Param::new("map", Kind::Text)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, text) = (args.id(0), args.text(1));
    let loops = own_nest(schedule, id)?;
    check_blocks(schedule, loops.first().copied().unwrap_or(id))?;
    let Some(block) = schedule.tree.as_block(id).cloned() else { return Ok(Vec::new()) };
    let mut space = schedule.space();
    let vars: Vec<Expr> = block.iters.iter().map(|iter| iter.var).collect();
    let outputs = read(&mut space, id, text, &vars)?;
    let atoms: Vec<AtomId> = vars.iter().filter_map(|&var| space.find(var)).collect();
    let extents = box_of(&mut space, id, &outputs, &atoms)?;
    let kinds = kinds_of(schedule, &space, id, &block.iters, &outputs)?;
    let made: Vec<Made> = extents
        .into_iter()
        .zip(kinds)
        .enumerate()
        .map(|(at, (extent, is_reduce))| Made::new(schedule, &mut space, at, extent, is_reduce))
        .collect();
    let given: Vec<Sum> = made.iter().map(|made| space.node(made.var)).collect();
    let Some(values) = space.invert(&outputs, &given, &atoms) else {
        return refuse(id, "what its iterators are in terms of those of the map is not found");
    };
    if !keeps_order(schedule, &mut space, &block.iters, &values, &made) {
        order::check_changed(schedule, id)?;
    }
    let pairs: Vec<(Expr, Expr)> = vars
        .iter()
        .zip(&values)
        .map(|(&var, value)| (var, space.build(&mut schedule.rw, value)))
        .collect();
    let nest = put(schedule, id, &loops, &made);
    schedule.substitute(id, pairs);
    Ok(nest.into_iter().map(|each| Loop(each).into()).collect())
}

/// The loops around a block, outermost first, where they hold it alone and each iterator of it is the variable of one of them, in
/// their order.
pub(super) fn own_nest(schedule: &Schedule, id: Id) -> Result<Vec<Id>> {
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    if block.predicate.is_some() {
        return refuse(id, "it has a predicate");
    }
    if !schedule.tree.blocks_of(Some(id)).is_empty() {
        return refuse(id, "it holds blocks of its own");
    }
    let loops = schedule.tree.loops_around(id);
    let mut space = schedule.space();
    for (at, &each) in loops.iter().enumerate() {
        let node = plain(schedule, each)?;
        if node.kind != LoopKind::Serial {
            return refuse(each, "how the loop runs is decided already");
        }
        let inside = loops.get(at + 1).copied().unwrap_or(id);
        if schedule.tree.parent(inside) != Some(each) {
            return refuse(each, "the loop holds more than the block");
        }
        let extent = space.read(schedule.body(), node.extent);
        if !space.is_symbolic(&extent) {
            return refuse(each, "the extent of the loop depends on another loop");
        }
    }
    let is_bound = |(iter, &each): (&Iter, &Id)| {
        let Some(node) = schedule.tree.as_for(each) else { return false };
        let mut read = |expr| space.read(schedule.body(), expr);
        read(iter.binding) == read(node.var)
            && read(iter.min).value() == Some(0)
            && read(iter.extent) == read(node.extent)
    };
    if loops.len() != block.iters.len() || !block.iters.iter().zip(&loops).all(is_bound) {
        return refuse(
            id,
            "its iterators are not the variables of the loops around it, one for each",
        );
    }
    Ok(loops)
}

/// What a map makes of the iterators.
fn read(space: &mut Space, id: Id, text: &str, vars: &[Expr]) -> Result<Vec<Sum>> {
    let map = match IndexMap::parse(text) {
        Ok(map) => map,
        Err(message) => return refuse(id, format!("in the map `{text}`: {message}")),
    };
    if map.inputs.len() != vars.len() {
        let (given, count) = (map.inputs.len(), vars.len());
        return refuse(id, format!("the map takes {given} iterators, and the block has {count}"));
    }
    match map.outputs.iter().map(|output| output.sum(space, vars)).collect() {
        Some(outputs) => Ok(outputs),
        None => refuse(id, "the map is not made of sums, and of quotients by positive numbers"),
    }
}

/// The extents of the box that the map takes the iterators to, where it fills it.
fn box_of(space: &mut Space, id: Id, outputs: &[Sum], atoms: &[AtomId]) -> Result<Vec<Sum>> {
    let mut extents = Vec::new();
    for output in outputs {
        match (space.lowest(output), space.highest(output)) {
            (Some(low), Some(high)) if space.is_natural(&low) => extents.push(high.add_int(1)),
            _ => return refuse(id, "the range of an iterator that the map makes is not known"),
        }
    }
    let product = |extents: &[Sum]| {
        extents.iter().try_fold(Sum::int(1), |product, extent| product.mul(extent))
    };
    let old: Vec<Sum> =
        atoms.iter().filter_map(|&atom| Some(space.range(atom)?.extent.clone())).collect();
    if !is_injective(space, outputs, atoms) || product(&old) != product(&extents) {
        return refuse(
            id,
            "the map does not take each step to a place of its own, without holes between them",
        );
    }
    Ok(extents)
}

/// Whether each of the new iterators is of a reduction: it is made of those that are, or of those that are not.
fn kinds_of(
    schedule: &Schedule,
    space: &Space,
    id: Id,
    iters: &[Iter],
    outputs: &[Sum],
) -> Result<Vec<bool>> {
    let mut kinds = Vec::new();
    for output in outputs {
        let own = iters.iter().filter(|iter| space.mentions(output, iter.var));
        let (reduced, others): (Vec<&Iter>, Vec<&Iter>) =
            own.partition(|iter| schedule.is_reduce(iter.kind));
        if let (Some(sum), Some(other)) = (reduced.first(), others.first()) {
            let (sum, other) = (schedule.var_name(sum.var), schedule.var_name(other.var));
            return refuse(
                id,
                format!(
                    "the map makes one iterator of `{other}`, which is spatial, and `{sum}`, which is of a reduction"
                ),
            );
        }
        kinds.push(!reduced.is_empty());
    }
    Ok(kinds)
}

/// An iterator that is made, and its loop.
pub(super) struct Made {
    pub(super) var: Expr,
    each: Expr,
    extent: Expr,
    is_reduce: bool,
}

impl Made {
    pub(super) fn new(
        schedule: &mut Schedule,
        space: &mut Space,
        at: usize,
        extent: Sum,
        is_reduce: bool,
    ) -> Self {
        let [var, each] =
            [format!("v{at}"), format!("ax{at}")].map(|name| schedule.index_var(&name));
        for own in [var, each] {
            space.set_range(own, Range { min: Sum::default(), extent: extent.clone() });
        }
        let extent = space.build(&mut schedule.rw, &extent);
        Self { var, each, extent, is_reduce }
    }
}

/// Whether the steps of a reduction still come in the order in which they came.
fn keeps_order(
    schedule: &Schedule,
    space: &mut Space,
    iters: &[Iter],
    values: &[Sum],
    made: &[Made],
) -> bool {
    let new = made.iter().filter(|made| made.is_reduce);
    let new: Vec<(Sum, Expr)> = new.map(|made| (space.node(made.var), made.extent)).collect();
    let mut number = |digits: Vec<(Sum, Expr)>| {
        digits.into_iter().try_fold(Sum::default(), |number, (digit, extent)| {
            let extent = space.read(schedule.body(), extent);
            let number = number.mul(&extent)?.add(&digit);
            Some(space.rejoin(number))
        })
    };
    let old = iters.iter().zip(values).filter(|(iter, _)| schedule.is_reduce(iter.kind));
    let old = number(old.map(|(iter, value)| (value.clone(), iter.extent)).collect());
    old.is_some() && old == number(new)
}

/// Puts the loops and iterators that were made in the place of those that a block has; the loops, outermost first.
pub(super) fn put(schedule: &mut Schedule, id: Id, loops: &[Id], made: &[Made]) -> Vec<Id> {
    let zero = schedule.int(0);
    let top = loops.first().copied().unwrap_or(id);
    let hole = schedule.tree.add(Node::Gone);
    schedule.tree.replace(top, hole);
    for &each in loops {
        *schedule.tree.get_mut(each) = Node::Gone;
    }
    let mut iters = Vec::new();
    for made in made {
        let kind = schedule.kind_term(made.is_reduce);
        let (var, binding, extent) = (made.var, made.each, made.extent);
        iters.push(Iter { var, kind, binding, min: zero, extent });
    }
    schedule.tree.block_mut(id).iters = iters;
    let (kind, thread, attrs) = (LoopKind::Serial, Symbol(0), Attrs::NONE);
    let mut nest = Vec::new();
    let mut body = id;
    for made in made.iter().rev() {
        let each =
            For { var: made.each, min: zero, extent: made.extent, kind, thread, attrs, body };
        body = schedule.tree.make(Node::For(each));
        nest.push(body);
    }
    schedule.tree.replace(hole, body);
    nest.reverse();
    nest
}
