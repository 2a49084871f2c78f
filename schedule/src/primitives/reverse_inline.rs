//! What a block makes of another's result, made where that is written.
//!
//! ```ir
//! block "B" (…) { %B[%vi] = %A[%vi] * 2.0 }
//! block "C" (…) { %C[%vi] = %B[%vi] + 1.0 }      =>      block "B" (…) { %C[%vi] = %A[%vi] * 2.0 + 1.0 }
//! ```
//!
//! The consumer reads one buffer that its scope makes, always at the same place, which is a bijection of its iterators. Of what
//! the producer wrote beyond what is read, nothing is computed: it gets a predicate.

use tenon_plugin_api::ir::{Build, Expr, Kind as NodeKind, View};

use crate::exprs::Replacing;
use crate::index::{AtomId, Space, Sum, is_injective};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{Id, Node};

use super::inline::{PointStore, drop_alloc, point_store};

pub(super) static REVERSE_INLINE: Primitive = Primitive {
    name: "reverse_inline",
    version: 1,
    summary: "Computes what a block makes of another's result where that is written.",
    params: &[Param::new("block", Kind::Block)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let producer = check(schedule, id)?;
    let point = point_store(schedule, producer)?;
    let mut space = schedule.space();
    let read = read_indices(schedule, &mut space, id, point.buffer)?;
    let values = invert(schedule, &mut space, id, &point, &read)?;
    let Some(node) = schedule.tree.as_block(id).cloned() else { return Ok(Vec::new()) };
    let Node::Store { buffer, value, indices } = schedule.tree.get(node.body).clone() else {
        return refuse(id, "its body is more than one store");
    };
    let conditions = limits(schedule, &mut space, id, producer, &values);
    let mut pairs: Vec<(Expr, Expr)> = Vec::new();
    for (iter, value) in node.iters.iter().zip(&values) {
        pairs.push((iter.var, space.build(&mut schedule.rw, value)));
    }
    let mut replacing = Replacing::of(pairs);
    let own = point.buffer;
    let rw = &mut schedule.rw;
    let remake = |rw: &mut tenon_plugin_api::pass::Rewriter, old: Expr, operands: &[Expr]| {
        (rw.body().kind(old) == NodeKind::LOAD && operands[0] == own).then_some(point.value)
    };
    let value = replacing.apply(rw, value, remake);
    let indices = indices
        .into_iter()
        .map(|index| {
            let index = replacing.of_expr(rw, index);
            crate::schedule::normal(rw, &mut space, index)
        })
        .collect();
    let Some(body) = schedule.tree.as_block(producer).map(|block| block.body) else {
        return Ok(Vec::new());
    };
    *schedule.tree.get_mut(body) = Node::Store { buffer, value, indices };
    for condition in conditions {
        schedule.add_predicate(&mut space, producer, &[condition]);
    }
    schedule.tree.remove(id);
    drop_alloc(schedule, own);
    Ok(Vec::new())
}

/// The producer of what a block reads, when the two can be one.
fn check(schedule: &Schedule, id: Id) -> Result<Id> {
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    if block.init.is_some() {
        return refuse(id, "it has an initial statement");
    }
    if block.predicate.is_some() {
        return refuse(id, "it has a predicate");
    }
    let among = schedule.tree.blocks_of(schedule.tree.scope(id));
    if let Some(why) = schedule.why_incomplete(id, &among) {
        return refuse(id, format!("the block is not complete: {why}"));
    }
    let producers = schedule.producers_of(id);
    let &[producer] = producers.as_slice() else {
        let count = producers.len();
        return refuse(
            id,
            format!("it reads what {count} blocks of its scope write, and should read one"),
        );
    };
    if let Some(why) = schedule.why_incomplete(producer, &among) {
        return refuse(producer, format!("the block whose result it reads is not complete: {why}"));
    }
    if schedule.is_output(producer) {
        return refuse(producer, "what it reads is read outside of the scope as well");
    }
    if schedule.consumers_of(producer) != [id] {
        return refuse(producer, "what it reads is read by other blocks as well");
    }
    Ok(producer)
}

/// The place at which a block reads a buffer, one for all of its loads.
fn read_indices(schedule: &Schedule, space: &mut Space, id: Id, buffer: Expr) -> Result<Vec<Sum>> {
    let mut found: Option<Vec<Sum>> = None;
    for access in schedule.accesses(space, id) {
        if access.buffer != buffer || access.is_store {
            continue;
        }
        let Some(indices) = access.indices else {
            return refuse(id, "it does not read single elements");
        };
        if found.as_ref().is_some_and(|found| *found != indices) {
            return refuse(id, "it reads several elements of what the other block writes");
        }
        found = Some(indices);
    }
    match found {
        Some(indices) => Ok(indices),
        None => refuse(id, "it does not read what the other block writes"),
    }
}

/// The iterators of the consumer in terms of those of the producer.
fn invert(
    schedule: &Schedule,
    space: &mut Space,
    id: Id,
    point: &PointStore,
    read: &[Sum],
) -> Result<Vec<Sum>> {
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let iters: Vec<AtomId> = block.iters.iter().filter_map(|iter| space.find(iter.var)).collect();
    if iters.len() != block.iters.len() || !is_injective(space, read, &iters) {
        return refuse(id, "the place at which it reads does not tell its iterators");
    }
    if !point.covers(space, read) {
        return refuse(id, "it reads elements that the other block is not known to write");
    }
    let given: Vec<Sum> = point
        .axes
        .iter()
        .map(|axis| axis.map_or_else(Sum::default, |axis| space.node(axis)))
        .collect();
    match space.invert(read, &given, &iters) {
        Some(values) => Ok(values),
        None => refuse(id, "the place at which it reads does not tell its iterators"),
    }
}

/// The conditions under which the consumer runs: where its iterators are in their domains.
fn limits(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    producer: Id,
    values: &[Sum],
) -> Vec<Expr> {
    let (Some(block), Some(made)) =
        (schedule.tree.as_block(id).cloned(), schedule.tree.as_block(producer).cloned())
    else {
        return Vec::new();
    };
    // A predicate reads what the iterators of the producer are bound to.
    let pairs = made
        .iters
        .iter()
        .filter_map(|iter| {
            let binding = space.read(schedule.body(), iter.binding);
            Some((space.find(iter.var)?, binding))
        })
        .collect();
    let mut conditions = Vec::new();
    for (iter, value) in block.iters.iter().zip(values) {
        let min = space.read(schedule.body(), iter.min);
        let extent = space.read(schedule.body(), iter.extent);
        let end = min.add(&extent);
        let bound = space.substitute(value, &pairs);
        if !space.is_less(value, &end) {
            conditions.push(schedule.less(space, &bound, &end));
        }
        if !space.is_natural(&value.sub(&min)) {
            conditions.push(schedule.at_least(space, &bound, &min));
        }
    }
    conditions.retain(|&condition| !matches!(schedule.view(condition), View::Int(1)));
    conditions
}
