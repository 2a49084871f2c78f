//! What a block computes, computed where it is read.
//!
//! ```ir
//! block "B" (…) { %B[%vi] = %A[%vi] * 2.0 }
//! block "C" (…) { %C[%vi] = %B[%vi] + 1.0 }      =>      block "C" (…) { %C[%vi] = %A[%vi] * 2.0 + 1.0 }
//! ```
//!
//! The block writes one element of a buffer of the program's own, at its iterators. A block that nobody reads goes.

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{Build, Expr, Kind as Node_, View};

use crate::exprs::{Replacing, mentions};
use crate::index::{Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{Id, Node};

pub(super) static INLINE: Primitive = Primitive {
    name: "inline",
    version: 1,
    summary: "Computes what a block writes where it is read.",
    params: &[Param::new("block", Kind::Block)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    inline(schedule, args.id(0))?;
    Ok(Vec::new())
}

/// Computes a block where it is read.
pub(super) fn inline(schedule: &mut Schedule, id: Id) -> Result<()> {
    let point = point_store(schedule, id)?;
    if schedule.tree.as_block(id).is_some_and(|block| block.init.is_some()) {
        return refuse(id, "it has an initial statement");
    }
    if schedule.is_output(id) {
        return refuse(id, "it writes what is read outside of its scope");
    }
    let scope = schedule.tree.scope(id);
    let among = schedule.tree.blocks_of(scope);
    if let Some(why) = schedule.why_incomplete(id, &among) {
        return refuse(id, format!("the block is not complete: {why}"));
    }
    let consumers = schedule.consumers_of(id);
    for &other in among.iter().filter(|&&other| other != id) {
        if schedule.buffers(other, true).contains(&point.buffer) {
            return refuse(
                other,
                "it writes a part of the buffer, so what is read there may be its",
            );
        }
    }
    for &consumer in &consumers {
        check_consumer(schedule, &point, consumer)?;
    }
    for consumer in consumers {
        inline_into(schedule, &point, consumer);
    }
    schedule.tree.remove(id);
    drop_alloc(schedule, point.buffer);
    Ok(())
}

/// A block whose body stores one element, at its iterators.
pub(super) struct PointStore {
    pub(super) buffer: Expr,
    pub(super) value: Expr,
    /// For each axis the iterator that is its index; none where the axis has one element.
    pub(super) axes: Vec<Option<Expr>>,
}

/// The only store of a block, at distinct iterators of it.
pub(super) fn point_store(schedule: &Schedule, id: Id) -> Result<PointStore> {
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let Node::Store { buffer, value, indices } = schedule.tree.get(block.body) else {
        return refuse(id, "its body is more than one store");
    };
    let iters: Vec<Expr> = block.iters.iter().map(|iter| iter.var).collect();
    let mut axes = Vec::new();
    for &index in indices {
        match schedule.view(index) {
            View::Int(0) => axes.push(None),
            _ if iters.contains(&index) && !axes.contains(&Some(index)) => axes.push(Some(index)),
            _ => return refuse(id, "it does not write at distinct iterators of its own"),
        }
    }
    if axes.len() != schedule.shape(*buffer).len() {
        return refuse(id, "it does not write at distinct iterators of its own");
    }
    let missing: Vec<Expr> =
        iters.iter().filter(|iter| !axes.contains(&Some(**iter))).copied().collect();
    let space = schedule.space();
    let moves = |iter: &Expr| {
        let atom = space.find(*iter);
        atom.and_then(|atom| space.range(atom)?.extent.value()) != Some(1)
    };
    if missing.iter().any(moves) || mentions(&schedule.rw, *value, &missing) {
        return refuse(id, "not each of its iterators says where it writes");
    }
    Ok(PointStore { buffer: *buffer, value: *value, axes })
}

/// What reads the buffer reads single elements that the block writes, and nothing else of it.
fn check_consumer(schedule: &Schedule, point: &PointStore, consumer: Id) -> Result<()> {
    let mut space = schedule.space();
    for access in schedule.accesses(&mut space, consumer) {
        if access.buffer != point.buffer {
            continue;
        }
        let Some(indices) = access.indices.filter(|_| !access.is_store) else {
            return refuse(access.stmt, "it does not read single elements of what is inlined");
        };
        if !point.covers(&space, &indices) {
            return refuse(access.stmt, "it reads elements that the block is not known to write");
        }
    }
    Ok(())
}

impl PointStore {
    /// Whether the elements at these indices are among those that the block writes.
    pub(super) fn covers(&self, space: &Space, indices: &[Sum]) -> bool {
        self.axes.iter().zip(indices).all(|(axis, index)| {
            let written = axis.and_then(|axis| space.range(space.find(axis)?)).cloned();
            let (min, end) = match written {
                Some(range) => (range.min.clone(), range.min.add(&range.extent)),
                None => (Sum::default(), Sum::int(1)),
            };
            let read = space.extremes(index, &|_| false);
            read.is_some_and(|[low, high]| {
                space.is_natural(&low.sub(&min)) && space.is_less(&high, &end)
            })
        })
    }
}

fn inline_into(schedule: &mut Schedule, point: &PointStore, consumer: Id) {
    let mut space = schedule.space();
    let mut replacing = Replacing::default();
    let (buffer, value, axes) = (point.buffer, point.value, point.axes.clone());
    schedule.rewrite(consumer, &mut replacing, &mut space, |rw, old, operands| {
        if rw.body().kind(old) != Node_::LOAD || operands[0] != buffer {
            return None;
        }
        let pairs: HashMap<Expr, Expr> = axes
            .iter()
            .zip(&operands[1..])
            .filter_map(|(axis, &index)| Some(((*axis)?, index)))
            .collect();
        Some(Replacing::of(pairs).of_expr(rw, value))
    });
}

/// Takes away the statement that makes a buffer which nobody accesses any more.
pub(super) fn drop_alloc(schedule: &mut Schedule, buffer: Expr) {
    let mut space = schedule.space();
    let root = schedule.tree.root;
    if schedule.bound_accesses(&mut space, root).iter().any(|access| access.buffer == buffer) {
        return;
    }
    let is_alloc = |&id: &Id| matches!(schedule.tree.get(id), Node::Alloc(made) if *made == buffer);
    if let Some(id) = schedule.tree.all().into_iter().find(is_alloc) {
        schedule.tree.remove(id);
    }
}
