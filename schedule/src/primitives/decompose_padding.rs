//! Padding as two blocks: one that fills, and one that copies without a condition.
//!
//! ```ir
//! for %i in 0..140 {                                    for %i in 0..140 { block "Y_fill" (%v = %i) { %Y[%v] = 0.0 } }
//!   block "Y" (%v: spatial = %i) {                =>    for %i in 0..128 { block "Y" (%v = %i + 6) { %Y[%v] = %X[%v - 6] } }
//!     if %v >= 6 && %v < 134 { %Y[%v] = %X[%v - 6] }
//!     else { %Y[%v] = 0.0 } } }
//! ```
//!
//! The condition compares iterators with bounds. A loop to which alone an iterator is bound becomes as long as what is inside;
//! what is left of the condition is a predicate. The fill stands before the loop that is named, which holds nothing else, so that
//! nobody meets an element between the two.

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{Expr, View};

use crate::exprs::{loads, mentions};
use crate::index::{Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{BlockNode, For, Id, Node};

pub(super) static DECOMPOSE_PADDING: Primitive = Primitive {
    name: "decompose_padding",
    version: 1,
    summary: "Makes a block of what padding is filled with, before a loop around it, and leaves what is inside without a condition.",
    params: &[Param::new("block", Kind::Block), Param::new("loop", Kind::Loop)],
    apply,
};

/// A store of a value where a condition holds, and of a number elsewhere.
struct Padding {
    buffer: Expr,
    indices: Vec<Expr>,
    cond: Expr,
    inside: Expr,
    number: Expr,
}

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, at) = (args.id(0), args.id(1));
    let among = schedule.tree.blocks_of(schedule.tree.scope(id));
    if let Some(why) = schedule.why_incomplete(id, &among) {
        return refuse(id, format!("the block is not complete: {why}"));
    }
    let loops = schedule.tree.loops_around(id);
    let Some(place) = loops.iter().position(|&each| each == at) else {
        return refuse(at, "the loop is not around the block");
    };
    if schedule.only_block(at) != Some(id) || schedule.only_blocks(at).is_err() {
        return refuse(at, "the loop holds more than the block");
    }
    let padding = recognize(schedule, id)?;
    let mut space = schedule.space();
    let limits = limits(schedule, &mut space, id, &padding)?;
    let (nest, fill) = fill_nest(schedule, id, &padding, &loops[place..]);
    let Some(body) = schedule.tree.as_block(id).map(|block| block.body) else {
        return Ok(Vec::new());
    };
    let Padding { buffer, indices, inside: value, .. } = padding;
    *schedule.tree.get_mut(body) = Node::Store { buffer, value, indices };
    schedule.tree.insert(at, false, vec![nest]);
    for limit in limits {
        narrow(schedule, id, &limit, &loops[place..]);
    }
    Ok(vec![Block(fill).into()])
}

fn recognize(schedule: &Schedule, id: Id) -> Result<Padding> {
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let body = schedule.tree.get(block.body);
    let padding = match body {
        Node::Store { buffer, value, indices } => match schedule.view(*value) {
            View::Select { cond, then, otherwise } => Some(Padding {
                buffer: *buffer,
                indices: indices.clone(),
                cond,
                inside: then,
                number: otherwise,
            }),
            _ => None,
        },
        Node::If { cond, then, otherwise: Some(otherwise) } => {
            match (schedule.tree.get(*then), schedule.tree.get(*otherwise)) {
                (
                    Node::Store { buffer, value, indices },
                    Node::Store { buffer: other, value: number, indices: same },
                ) if buffer == other && indices == same => Some(Padding {
                    buffer: *buffer,
                    indices: indices.clone(),
                    cond: *cond,
                    inside: *value,
                    number: *number,
                }),
                _ => None,
            }
        }
        _ => None,
    };
    let Some(padding) = padding else {
        return refuse(id, "it does not store one of two values by a condition");
    };
    match schedule.view(padding.number) {
        View::Int(_) | View::Float(_) => Ok(padding),
        _ => refuse(id, "what it stores outside is no number"),
    }
}

/// `slack >= 0` of an iterator of the block: it is at least, or below, `bound`.
struct Limit {
    iter: usize,
    is_lower: bool,
    bound: Sum,
}

/// What the condition says of iterators.
fn limits(schedule: &Schedule, space: &mut Space, id: Id, padding: &Padding) -> Result<Vec<Limit>> {
    let mut limits = Vec::new();
    for part in schedule.conjuncts(padding.cond) {
        let slack = schedule.slack(space, part).filter(|_| loads(&schedule.rw, part).is_empty());
        let Some(slack) = slack else {
            return refuse(id, "its condition is more than comparisons of indices");
        };
        if space.is_natural(&slack) {
            continue;
        }
        match limit(schedule, space, id, &slack) {
            Some(limit) => limits.push(limit),
            None => {
                return refuse(id, "its condition compares more than one iterator with a bound");
            }
        }
    }
    match limits.is_empty() {
        true => refuse(id, "its condition always holds, so there is no padding"),
        false => Ok(limits),
    }
}

fn limit(schedule: &Schedule, space: &Space, id: Id, slack: &Sum) -> Option<Limit> {
    let block = schedule.tree.as_block(id)?;
    let own = |(at, var): (usize, Expr)| {
        let atom = space.find(var)?;
        let (factor, rest) = slack.linear_in(atom)?;
        let factor = factor.value().filter(|factor| factor.abs() == 1)?;
        space.is_symbolic(&rest).then(|| match factor {
            1 => Limit { iter: at, is_lower: true, bound: rest.times(-1) },
            _ => Limit { iter: at, is_lower: false, bound: rest.add_int(1) },
        })
    };
    block.iters.iter().map(|iter| iter.var).enumerate().find_map(own)
}

/// Loops like those from the one that is named on around a block that stores the number.
fn fill_nest(schedule: &mut Schedule, id: Id, padding: &Padding, inner: &[Id]) -> (Id, Id) {
    let block = schedule.tree.as_block(id).cloned().expect("the block was looked at before");
    let mut pairs: HashMap<Expr, Expr> = HashMap::default();
    let mut iters = block.iters.clone();
    for iter in &mut iters {
        let var = schedule.rw.rebuild(iter.var, &[]);
        pairs.insert(iter.var, var);
        iter.var = var;
    }
    let (buffer, value, indices) = (padding.buffer, padding.number, padding.indices.clone());
    let body = schedule.tree.add(Node::Store { buffer, value, indices });
    let name = format!("{}_fill", schedule.block_name(id));
    let name = schedule.symbol(&name);
    let made = schedule.tree.make(Node::Block(BlockNode { name, iters, body, ..block }));
    let loops: Vec<For> =
        inner.iter().filter_map(|&each| schedule.tree.as_for(each)).cloned().collect();
    let nest = loops.into_iter().rev().fold(made, |body, each| {
        let var = schedule.rw.rebuild(each.var, &[]);
        pairs.insert(each.var, var);
        schedule.tree.make(Node::For(For { var, body, ..each }))
    });
    schedule.substitute(nest, pairs);
    (nest, made)
}

/// Keeps a block to what a limit allows: by a shorter loop, where it is the iterator's own, or by a predicate.
fn narrow(schedule: &mut Schedule, id: Id, limit: &Limit, inner: &[Id]) {
    let mut space = schedule.space();
    let Some(block) = schedule.tree.as_block(id) else { return };
    let iter = block.iters[limit.iter];
    let [min, extent] = [iter.min, iter.extent].map(|expr| space.read(schedule.body(), expr));
    let binding = space.read(schedule.body(), iter.binding);
    let own =
        inner.iter().copied().find(|&each| is_own(schedule, &mut space, id, limit.iter, each));
    let cut = match limit.is_lower {
        true => limit.bound.sub(&min),
        false => min.add(&extent).sub(&limit.bound),
    };
    let left = extent.sub(&cut);
    if let Some(each) = own
        && space.is_natural(&cut)
        && space.is_natural(&left)
    {
        let left = space.build(&mut schedule.rw, &left);
        schedule.tree.for_mut(each).extent = left;
        let start = if limit.is_lower { cut } else { Sum::default() };
        let [binding, min] =
            [binding.add(&start), min.add(&start)].map(|sum| space.build(&mut schedule.rw, &sum));
        let iter = &mut schedule.tree.block_mut(id).iters[limit.iter];
        (iter.binding, iter.min, iter.extent) = (binding, min, left);
        return;
    }
    let condition = match limit.is_lower {
        true => schedule.at_least(&space, &binding, &limit.bound),
        false => schedule.less(&space, &binding, &limit.bound),
    };
    schedule.add_predicate(&mut space, id, &[condition]);
}

/// Whether a loop moves one iterator alone, over its whole domain, one value a step, and nothing else reads its variable.
fn is_own(schedule: &Schedule, space: &mut Space, id: Id, at: usize, each: Id) -> bool {
    let (Some(block), Some(node)) = (schedule.tree.as_block(id), schedule.tree.as_for(each)) else {
        return false;
    };
    let body = schedule.body();
    let [first, extent] = [node.min, node.extent].map(|expr| space.read(body, expr));
    let iter = block.iters[at];
    let [binding, min, domain] =
        [iter.binding, iter.min, iter.extent].map(|expr| space.read(body, expr));
    let value = space.node(node.var).add(&min);
    let mut read: Vec<Expr> = block.predicate.into_iter().collect();
    read.extend(
        block
            .iters
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != at)
            .map(|(_, iter)| iter.binding),
    );
    for stmt in schedule.tree.walk(each).into_iter().skip(1) {
        match schedule.tree.get(stmt) {
            Node::For(inner) => read.extend([inner.min, inner.extent]),
            Node::Store { value, indices, .. } => {
                read.extend(indices.iter().copied().chain([*value]))
            }
            _ => {}
        }
    }
    first.value() == Some(0)
        && extent == domain
        && binding == value
        && !read.iter().any(|&expr| mentions(&schedule.rw, expr, &[node.var]))
}
