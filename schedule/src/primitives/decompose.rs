//! The initial statement of a reduction as a block of its own.
//!
//! ```ir
//! for %i … { for %k … {                               for %i … {
//!   block "B" (…) init { %B[%vi] = 0.0 }      =>        block "B_init" (…) { %B[%vi] = 0.0 }
//!     { %B[%vi] = %B[%vi] + %A[%vi, %vk] }              for %k … { block "B_update" (…)
//! } }                                                     { %B[%vi] = %B[%vi] + %A[%vi, %vk] } } }
//! ```
//!
//! It runs before the loop that is named, around which no loop goes through the reduction.

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::Expr;

use crate::exprs::mentions;
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{BlockNode, For, Id, Iter, Node};

pub(super) static DECOMPOSE_REDUCTION: Primitive = Primitive {
    name: "decompose_reduction",
    version: 1,
    summary: "Makes the initial statement of a reduction a block before a loop around it.",
    params: &[Param::new("block", Kind::Block), Param::new("loop", Kind::Loop)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, at) = (args.id(0), args.id(1));
    let among = schedule.tree.blocks_of(schedule.tree.scope(id));
    if let Some(why) = schedule.why_no_reduction(id, &among) {
        return refuse(id, format!("the block is no reduction: {why}"));
    }
    let loops = schedule.tree.loops_around(id);
    let Some(place) = loops.iter().position(|&each| each == at) else {
        return refuse(at, "the loop is not around the block");
    };
    let Some(block) = schedule.tree.as_block(id).cloned() else { return Ok(Vec::new()) };
    let vars_of = |is_reduce: bool| -> Vec<Expr> {
        let iters = block.iters.iter().filter(|iter| schedule.is_reduce(iter.kind) == is_reduce);
        let bindings: Vec<Expr> = iters.map(|iter| iter.binding).collect();
        let vars = loops.iter().filter_map(|&each| schedule.tree.as_for(each)).map(|each| each.var);
        vars.filter(|&var| bindings.iter().any(|&binding| mentions(&schedule.rw, binding, &[var])))
            .collect()
    };
    let (spatial, reduce) = (vars_of(false), vars_of(true));
    for &each in &loops[..place] {
        if schedule.tree.as_for(each).is_some_and(|each| reduce.contains(&each.var)) {
            return refuse(
                each,
                "this loop, around the one that is named, goes through the reduction",
            );
        }
    }
    for &each in &loops[place..] {
        let var = schedule.tree.as_for(each).map(|each| each.var);
        if var.is_some_and(|var| reduce.contains(&var) && spatial.contains(&var)) {
            return refuse(each, "this loop moves iterators of the reduction and others");
        }
        let mut space = schedule.space();
        let node = schedule.tree.as_for(each);
        let steps = node.and_then(|node| space.read(schedule.body(), node.extent).value());
        if var.is_some_and(|var| !reduce.contains(&var) && !spatial.contains(&var))
            && steps != Some(1)
        {
            return refuse(
                each,
                "this loop repeats the reduction, which would start once for all of it",
            );
        }
    }
    let inner: Vec<For> = loops[place..]
        .iter()
        .filter_map(|&each| schedule.tree.as_for(each))
        .filter(|each| spatial.contains(&each.var))
        .cloned()
        .collect();
    let (nest, made) = init_nest(schedule, id, &block, &inner, &reduce);
    schedule.tree.insert(at, false, vec![nest]);
    let name = format!("{}_update", schedule.block_name(id));
    let name = schedule.symbol(&name);
    let update = schedule.tree.block_mut(id);
    (update.init, update.name) = (None, name);
    Ok(vec![Block(made).into()])
}

/// The loops that move spatial iterators, around a block of the initial statement.
fn init_nest(
    schedule: &mut Schedule,
    id: Id,
    block: &BlockNode,
    inner: &[For],
    reduce: &[Expr],
) -> (Id, Id) {
    let init = block.init.expect("a reduction has an initial statement");
    let mut pairs: HashMap<Expr, Expr> = HashMap::default();
    let mut iters = Vec::new();
    for iter in &block.iters {
        if schedule.is_reduce(iter.kind) {
            continue;
        }
        let var = schedule.rw.rebuild(iter.var, &[]);
        pairs.insert(iter.var, var);
        iters.push(Iter { var, ..*iter });
    }
    let predicate: Vec<Expr> = block
        .predicate
        .map_or(Vec::new(), |predicate| schedule.conjuncts(predicate))
        .into_iter()
        .filter(|&part| !mentions(&schedule.rw, part, reduce))
        .collect();
    let mut space = schedule.space();
    let predicate = schedule.join(&mut space, &predicate);
    let name = format!("{}_init", schedule.block_name(id));
    let name = schedule.symbol(&name);
    let made = schedule.tree.make(Node::Block(BlockNode {
        name,
        iters,
        predicate,
        attrs: block.attrs,
        init: None,
        body: init,
    }));
    let nest = inner.iter().rev().fold(made, |body, each| {
        let var = schedule.rw.rebuild(each.var, &[]);
        pairs.insert(each.var, var);
        schedule.tree.make(Node::For(For { var, body, ..each.clone() }))
    });
    schedule.substitute(nest, pairs);
    (nest, made)
}
