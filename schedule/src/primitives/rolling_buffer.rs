//! A buffer that keeps of one axis what a step of a loop reads, where each step reads most of what the one before did.
//!
//! ```ir
//! alloc %B: f32[10]                                  alloc %B: f32[6]
//! for %i_0 in 0..2 {                                 for %i_0 in 0..2 {
//!   for %ax in 0..6 { block "B"               =>       for %ax in 0..6 { block "B" where %i_0 == 0 || %ax >= 2
//!     %B[%v] = … }                                       %B[%v % 6] = … }
//!   … %B[%w + %k] …                                    … %B[(%w + %k) % 6] …
//! }                                                  }
//! ```
//!
//! What a step has in common with the one before is there already, and is not computed again. The iterator along the axis is one whose
//! values come in order then (`scan`), so that no primitive takes its steps apart.

use tenon_plugin_api::ir::{BinaryOp, BuildPrim, Expr, LoopKind};

use crate::access::Access;
use crate::compact::writes_all;
use crate::index::{AtomId, Range, Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::Id;

use super::cache::named;
use super::kinds::shared_at_once;

pub(super) static ROLLING_BUFFER: Primitive = Primitive {
    name: "rolling_buffer",
    version: 1,
    summary: "Keeps of a buffer what a step of the loop around a block and its readers reads, and writes what the step before did not.",
    params: &[Param::new("block", Kind::Block), Param::new("buffer", Kind::Text)],
    apply,
};

/// The axis that rolls: in each step of the loop `extent` elements from `start` on are read, `new` of them for the first time.
struct Window {
    axis: usize,
    start: Sum,
    extent: i64,
    new: i64,
}

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let buffer = named(schedule, id, args.text(1), true)?;
    let at = check(schedule, id, buffer)?;
    let mut space = schedule.space();
    let outside = schedule.outside(&space, at);
    let Window { axis, start, extent, new } = window(schedule, &mut space, id, at, buffer)?;
    let written = bound(schedule, &mut space, id, buffer, true);
    let index = written[0].indices.as_ref().map(|indices| indices[axis].clone());
    let Some(index) = index else { return refuse(id, "it does not write single elements") };
    if !writes_all(schedule, &mut space, id, &outside) {
        return refuse(id, "it is not known to write all elements of a box in each step");
    }
    roll(schedule, id, axis, &written[0])?;
    let in_first = schedule.tree.as_for(at).map(|each| (each.var, each.min));
    if let Some((var, min)) = in_first {
        let first = schedule.rw.binary(BinaryOp::Eq, var, min);
        let is_new = schedule.at_least(&space, &index.sub(&start), &Sum::int(extent - new));
        let condition = schedule.rw.binary(BinaryOp::Or, first, is_new);
        schedule.add_predicate(&mut space, id, &[condition]);
    }
    schedule.wrap(buffer, axis, extent);
    Ok(Vec::new())
}

/// The innermost loop around the block and all that read the buffer, which nobody else uses.
fn check(schedule: &Schedule, id: Id, buffer: Expr) -> Result<Id> {
    if !schedule.all_allocated().contains(&buffer) {
        return refuse(id, "the buffer is a parameter, which keeps all of its elements");
    }
    let all = schedule.tree.blocks_of(schedule.tree.scope(id));
    let uses = |other: &&Id, is_store| schedule.buffers(**other, is_store).contains(&buffer);
    if let Some(&other) = all.iter().find(|other| **other != id && uses(other, true)) {
        return refuse(other, "this block writes the buffer as well");
    }
    let why = match schedule.tree.as_block(id).is_some_and(|block| block.init.is_some()) {
        true => schedule.why_not_reducing(id, &all),
        false => schedule.why_incomplete(id, &all),
    };
    if let Some(why) = why {
        return refuse(id, format!("what it writes is not known by its place: {why}"));
    }
    let readers: Vec<Id> =
        all.iter().filter(|other| **other != id && uses(other, false)).copied().collect();
    if readers.is_empty() {
        return refuse(id, "nobody reads what it writes");
    }
    let holds_all = |&&each: &&Id| readers.iter().all(|&it| schedule.tree.is_inside(it, each));
    let loops = schedule.tree.loops_around(id);
    let Some(&at) = loops.iter().rev().find(holds_all) else {
        return refuse(id, "no loop is around the block and all that read the buffer");
    };
    let is_serial = schedule.tree.as_for(at).is_some_and(|each| each.kind == LoopKind::Serial);
    if !is_serial {
        return refuse(at, "the steps of this loop do not come one after the other");
    }
    if let Some(shared) = shared_at_once(schedule, at, buffer) {
        return refuse(shared, "the steps of this loop run at once and share the buffer");
    }
    schedule.only_blocks(at)?;
    if !schedule.takes_each_once(&mut schedule.space(), id, at) || reduces_outside(schedule, id, at)
    {
        return refuse(id, "a step of the loop does not compute each element once, and whole");
    }
    let before = |reader: &&Id| {
        let order = schedule.tree.walk(at);
        let place = |id: Id| order.iter().position(|&other| other == id);
        place(**reader) < place(id)
    };
    match readers.iter().find(before) {
        Some(&reader) => refuse(reader, "it reads the buffer before the block writes it"),
        None => Ok(at),
    }
}

/// Whether a loop, or one around it, goes through the reduction of a block.
fn reduces_outside(schedule: &Schedule, id: Id, at: Id) -> bool {
    let mut space = schedule.space();
    let outside = schedule.outside(&space, at);
    let iters = schedule.tree.as_block(id).map_or(&[][..], |block| &block.iters);
    iters.iter().filter(|iter| schedule.is_reduce(iter.kind)).any(|iter| {
        let binding = space.read(schedule.body(), iter.binding);
        space.nodes_of(&binding).iter().any(|atom| outside.contains(atom))
    })
}

/// The accesses to a buffer in a block, in terms of the loops around.
fn bound(
    schedule: &Schedule,
    space: &mut Space,
    id: Id,
    buffer: Expr,
    is_store: bool,
) -> Vec<Access> {
    let mut met = schedule.bound_accesses(space, id);
    met.retain(|access| access.buffer == buffer && access.is_store == is_store);
    met
}

/// The axis along which the loop moves what the block writes, by less than it writes.
fn window(schedule: &Schedule, space: &mut Space, id: Id, at: Id, buffer: Expr) -> Result<Window> {
    let outside = schedule.outside(space, at);
    let is_fixed = |atom: AtomId| outside.contains(&atom);
    let written = bound(schedule, space, id, buffer, true);
    let mut read = schedule.bound_accesses(space, at);
    read.retain(|access| access.buffer == buffer && !access.is_store);
    read.retain(|access| !schedule.tree.is_inside(access.stmt, id));
    let mut region = |accesses: &[Access]| {
        let met: Vec<&Access> = accesses.iter().collect();
        schedule.region(space, buffer, &met, &is_fixed)
    };
    let (written, read) = (region(&written), region(&read));
    let Some(var) = schedule.tree.as_for(at).and_then(|each| space.find(each.var)) else {
        return refuse(at, "it is no loop");
    };
    let covers = |(written, read): (&Range, &Range)| {
        let left = written.min.add(&written.extent).sub(&read.min.add(&read.extent));
        space.is_natural(&read.min.sub(&written.min)) && space.is_natural(&left)
    };
    if !written.iter().zip(&read).all(covers) {
        return refuse(at, "a step is not known to read only what the block writes in it");
    }
    let moves = |range: &Range| space.holds(&range.min, var);
    let mut moving = written.iter().enumerate().filter(|(_, range)| moves(range));
    let (Some((axis, range)), None) = (moving.next(), moving.next()) else {
        return refuse(at, "the loop does not move what is written along one axis");
    };
    let step = range.min.linear_in(var).and_then(|(step, rest)| {
        let is_hidden = space.holds(&rest, var);
        step.value().filter(|_| !is_hidden)
    });
    match (step, range.extent.value()) {
        (Some(new), Some(extent)) if 0 < new && new < extent => {
            Ok(Window { axis, start: range.min.clone(), extent, new })
        }
        (Some(_), Some(_)) => refuse(at, "the windows of its steps do not overlap"),
        _ => refuse(at, "how far a step moves the window, and how large it is, is not known"),
    }
}

/// Says of the iterator along the axis that its values come in order.
fn roll(schedule: &mut Schedule, id: Id, axis: usize, written: &Access) -> Result<()> {
    let mut space = schedule.space();
    let own = schedule.accesses(&mut space, id);
    let store = own.iter().find(|access| access.is_store && access.buffer == written.buffer);
    let index = store.and_then(|store| store.indices.as_ref().map(|each| each[axis].clone()));
    let index = index.unwrap_or_default();
    let kind = schedule.symbol("scan").into();
    let block = schedule.tree.block_mut(id);
    for iter in &mut block.iters {
        if space.find(iter.var).is_some_and(|atom| space.holds(&index, atom)) {
            iter.kind = kind;
        }
    }
    Ok(())
}
