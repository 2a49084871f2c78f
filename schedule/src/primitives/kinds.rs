//! How loops run: on several threads, as lanes of vectors, repeated, as an axis of a device.
//!
//! What lowering needs is asked here, so that a schedule that was made is one that compiles: constant extents of vectors and of
//! what is repeated, one level of parallel loops, equal extents of one axis.

use tenon_plugin_api::ir::{Expr, LoopKind, Symbol};

use crate::access::Access;
use crate::compact::writes_what_it_reads;
use crate::index::{AtomId, Space, Sum, is_injective};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::Id;

pub(super) static PARALLEL: Primitive = Primitive {
    name: "parallel",
    version: 1,
    summary: "Runs the steps of a loop on several threads.",
    params: &[Param::new("loop", Kind::Loop)],
    apply: parallel,
};

pub(super) static VECTORIZE: Primitive = Primitive {
    name: "vectorize",
    version: 1,
    summary: "Makes the steps of a loop the lanes of vectors.",
    params: &[Param::new("loop", Kind::Loop)],
    apply: vectorize,
};

pub(super) static UNROLL: Primitive = Primitive {
    name: "unroll",
    version: 1,
    summary: "Repeats the body of a loop for each of its steps.",
    params: &[Param::new("loop", Kind::Loop)],
    apply: unroll,
};

pub(super) static BIND: Primitive = Primitive {
    name: "bind",
    version: 1,
    summary: "Makes an axis of a device run the steps of a loop.",
    params: &[
        Param::new("loop", Kind::Loop),
        Param::new(
            "axis",
            Kind::Word(&[
                "blockIdx_x",
                "blockIdx_y",
                "blockIdx_z",
                "threadIdx_x",
                "threadIdx_y",
                "threadIdx_z",
            ]),
        ),
    ],
    apply: bind,
};

fn parallel(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    independent(schedule, id, false)?;
    let around = schedule.tree.ancestors(id);
    let is_parallel =
        |id: &Id| schedule.tree.as_for(*id).is_some_and(|each| each.kind == LoopKind::Parallel);
    let inside = schedule.tree.walk(id).into_iter().skip(1);
    if let Some(other) = around.chain(inside).find(is_parallel) {
        return refuse(other, "this loop is parallel already, and parallel loops do not nest");
    }
    set_kind(schedule, id, LoopKind::Parallel)
}

fn vectorize(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    independent(schedule, id, false)?;
    constant(schedule, id, "vectors have a constant number of lanes; split the loop first")?;
    set_kind(schedule, id, LoopKind::Vectorized)
}

fn unroll(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    constant(
        schedule,
        id,
        "only a constant number of steps can be repeated; split the loop first",
    )?;
    set_kind(schedule, id, LoopKind::Unrolled)
}

fn bind(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let axis = args.text(1).replace('_', ".");
    independent(schedule, id, axis.starts_with("threadIdx"))?;
    let thread = schedule.symbol(&axis);
    if let Some(each) = schedule.tree.as_for(id)
        && each.kind != LoopKind::Serial
    {
        return refuse(id, "the loop has a kind already");
    }
    check_axis(schedule, id, thread, &axis)?;
    schedule.tree.for_mut(id).thread = thread;
    set_kind(schedule, id, LoopKind::ThreadBound)
}

fn set_kind(schedule: &mut Schedule, id: Id, kind: LoopKind) -> Result<Vec<Handle>> {
    schedule.tree.for_mut(id).kind = kind;
    Ok(Vec::new())
}

/// Loops of one axis in one nest have one extent, and are not in one another.
fn check_axis(schedule: &Schedule, id: Id, thread: Symbol, axis: &str) -> Result<()> {
    let mut space = schedule.space();
    let mut extent = |id: Id| {
        let each = schedule.tree.as_for(id)?;
        Some(space.read(schedule.body(), each.extent))
    };
    let own = extent(id);
    let mut top = id;
    for ancestor in schedule.tree.ancestors(id) {
        if let Some(each) = schedule.tree.as_for(ancestor) {
            if each.kind == LoopKind::ThreadBound && each.thread == thread {
                return refuse(ancestor, format!("this loop around it is bound to {axis} already"));
            }
            top = ancestor;
        }
    }
    for other in schedule.tree.walk(top) {
        let Some(each) = schedule.tree.as_for(other) else { continue };
        let is_same = each.kind == LoopKind::ThreadBound && each.thread == thread;
        if other != id && is_same && extent(other) != own {
            return refuse(
                other,
                format!("this loop is bound to {axis} as well, with another extent"),
            );
        }
    }
    Ok(())
}

fn constant(schedule: &Schedule, id: Id, why: &str) -> Result<()> {
    let mut space = schedule.space();
    let extent = schedule.tree.as_for(id).map(|each| space.read(schedule.body(), each.extent));
    match extent.and_then(|extent| extent.value()) {
        Some(_) => Ok(()),
        None => refuse(id, why),
    }
}

/// The steps of a loop may run in any order, or at once: what is inside is complete or a reduction, and the loop moves spatial
/// iterators alone; with `reductions` those of reductions too.
pub(super) fn independent(schedule: &Schedule, id: Id, reductions: bool) -> Result<()> {
    schedule.only_blocks(id)?;
    let Some(var) = schedule.tree.as_for(id).map(|each| each.var) else {
        return refuse(id, "it is no loop");
    };
    let blocks = schedule.tree.blocks_below(id);
    let shared = shared_by_steps(schedule, id, var);
    for &block in &blocks {
        // Blocks that share a buffer are in nobody's way where each step of the loop has its own part of it.
        let writes_shared = schedule.buffers(block, true).iter().any(|each| shared.contains(each));
        let among = if writes_shared { &blocks[..] } else { &[block] };
        check_block(schedule, block, among, var, reductions)?;
    }
    if shared.is_empty() { Ok(()) } else { check_flow(schedule, id, var, &blocks) }
}

/// What a block reads of another one inside of the loop was written in the same step.
fn check_flow(schedule: &Schedule, id: Id, var: Expr, blocks: &[Id]) -> Result<()> {
    let mut space = schedule.space();
    let accesses = schedule.bound_accesses(&mut space, id);
    let own = schedule.allocated(&schedule.tree.walk(id));
    let outside = schedule.outside(&space, id);
    let Some(var) = space.find(var) else { return Ok(()) };
    for buffer in schedule.buffers(id, true).into_iter().filter(|buffer| !own.contains(buffer)) {
        let (mut met, mut of) = (Vec::new(), Vec::new());
        for access in accesses.iter().filter(|access| access.buffer == buffer) {
            let block = blocks.iter().find(|&&block| schedule.tree.is_inside(access.stmt, block));
            met.extend(block.map(|_| access.clone()));
            of.extend(block);
        }
        let of_both = met.iter().zip(&of);
        let (writes, reads): (Vec<_>, Vec<_>) = of_both.partition(|(access, _)| access.is_store);
        let is_other = |block: &Id| writes.iter().any(|(_, writer)| *writer != block);
        let Some((_, reader)) = reads.into_iter().find(|(_, reader)| is_other(reader)) else {
            continue;
        };
        let rank = schedule.shape(buffer).len();
        let all: Vec<&Access> = met.iter().collect();
        let is_apart = is_buffer_apart(&mut space, &all, rank, var, &|it| outside.contains(&it));
        if !is_apart && !writes_what_it_reads(schedule, &mut space, buffer, &met, &of, &outside) {
            let name = schedule.var_name(buffer);
            return refuse(
                *reader,
                format!("it reads of `{name}` what another step of the loop may write"),
            );
        }
    }
    Ok(())
}

/// Whether no step of a loop accesses an element that another one writes.
pub(super) fn are_steps_apart(schedule: &Schedule, id: Id, var: Expr) -> bool {
    shared_by_steps(schedule, id, var).is_empty()
}

/// The buffers of which steps of a loop may access an element that another one writes. None is one where on some axis all accesses are
/// within one multiple of the loop's variable; or where some axes together say which step it is.
fn shared_by_steps(schedule: &Schedule, id: Id, var: Expr) -> Vec<Expr> {
    let mut space = schedule.space();
    let accesses = schedule.bound_accesses(&mut space, id);
    let own = schedule.allocated(&schedule.tree.walk(id));
    let mut written = schedule.buffers(id, true);
    let Some(var) = space.find(var) else { return written };
    let mut fixed = vec![var];
    for around in schedule.tree.ancestors(id) {
        fixed.extend(schedule.tree.as_for(around).and_then(|each| space.find(each.var)));
    }
    let is_fixed = |atom: AtomId| fixed.contains(&atom);
    written.retain(|&buffer| {
        let met: Vec<&Access> = accesses.iter().filter(|access| access.buffer == buffer).collect();
        let rank = schedule.shape(buffer).len();
        !own.contains(&buffer) && !is_buffer_apart(&mut space, &met, rank, var, &is_fixed)
    });
    written
}

/// A loop around a statement whose steps run at once and share elements of a buffer.
pub(super) fn shared_at_once(schedule: &Schedule, at: Id, buffer: Expr) -> Option<Id> {
    let mut space = schedule.space();
    let rank = schedule.shape(buffer).len();
    schedule.tree.ancestors(at).find(|&id| {
        let Some(each) = schedule.tree.as_for(id) else { return false };
        if matches!(each.kind, LoopKind::Serial | LoopKind::Unrolled) {
            return false;
        }
        let mut met = schedule.bound_accesses(&mut space, id);
        met.retain(|access| access.buffer == buffer);
        let all: Vec<&Access> = met.iter().collect();
        let outside = schedule.outside(&space, id);
        let var = space.find(each.var);
        var.is_some_and(|var| {
            !is_buffer_apart(&mut space, &all, rank, var, &|atom| outside.contains(&atom))
        })
    })
}

/// Whether each step of a loop has its own part of a buffer, by all accesses to that.
pub(super) fn is_buffer_apart(
    space: &mut Space,
    accesses: &[&Access],
    rank: usize,
    var: AtomId,
    is_fixed: &dyn Fn(AtomId) -> bool,
) -> bool {
    (0..rank).any(|axis| is_apart_on(space, accesses, axis, var, is_fixed))
        || says_the_step(space, accesses, rank, var, is_fixed)
}

/// Whether the indices that all accesses have in common take other values in each step: of a loop that was made of several, its
/// quotients and remainders.
fn says_the_step(
    space: &mut Space,
    accesses: &[&Access],
    rank: usize,
    var: AtomId,
    is_fixed: &dyn Fn(AtomId) -> bool,
) -> bool {
    let index =
        |access: &Access, axis: usize| access.indices.as_ref().map(|each| each[axis].clone());
    let Some((first, others)) = accesses.split_first() else { return true };
    let common = (0..rank).filter_map(|axis| {
        let own = index(first, axis)?;
        let is_common = others.iter().all(|other| index(other, axis).as_ref() == Some(&own));
        (is_common && space.nodes_of(&own).into_iter().all(is_fixed)).then_some(own)
    });
    let common: Vec<Sum> = common.collect();
    is_injective(space, &common, &[var])
}

fn is_apart_on(
    space: &Space,
    accesses: &[&Access],
    axis: usize,
    var: AtomId,
    is_fixed: &dyn Fn(AtomId) -> bool,
) -> bool {
    let mut hull: Option<(i64, [Sum; 2])> = None;
    for access in accesses {
        let Some(indices) = &access.indices else { return false };
        let Some((factor, rest)) = indices[axis].linear_in(var) else { return false };
        // Not within a quotient or remainder either.
        let hides = space.holds(&rest, var);
        let (Some(step), Some([low, high])) = (factor.value(), space.extremes(&rest, is_fixed))
        else {
            return false;
        };
        if step <= 0 || hides {
            return false;
        }
        hull = Some(match hull {
            None => (step, [low, high]),
            Some((other, _)) if other != step => return false,
            Some((_, [first, last])) => {
                let lesser = |a: Sum, b: Sum| if space.is_natural(&b.sub(&a)) { a } else { b };
                (step, [lesser(first, low), lesser(last.times(-1), high.times(-1)).times(-1)])
            }
        });
    }
    // Bounds that could not be compared leave a hull that does not hold both: each access is asked once more.
    let Some((step, [first, last])) = hull else { return true };
    let is_inside = |access: &&Access| {
        let rest = access.indices.as_ref().and_then(|indices| indices[axis].linear_in(var));
        let ends = rest.and_then(|(_, rest)| space.extremes(&rest, is_fixed));
        ends.is_some_and(|[low, high]| {
            space.is_natural(&low.sub(&first)) && space.is_natural(&last.sub(&high))
        })
    };
    accesses.iter().all(is_inside) && space.is_less(&last.sub(&first), &Sum::int(step))
}

fn check_block(
    schedule: &Schedule,
    block: Id,
    among: &[Id],
    var: Expr,
    reductions: bool,
) -> Result<()> {
    let Some(node) = schedule.tree.as_block(block) else { return Ok(()) };
    let mut space = schedule.space();
    for iter in &node.iters {
        let binding = space.read(schedule.body(), iter.binding);
        let is_fine = schedule.is_spatial(iter.kind) || reductions && schedule.is_reduce(iter.kind);
        if space.mentions(&binding, var) && !is_fine {
            let name = schedule.var_name(iter.var);
            return refuse(
                block,
                format!("its iterator `{name}` is moved by the loop and is not spatial"),
            );
        }
    }
    let incomplete = match node.init {
        None => schedule.why_incomplete(block, among),
        Some(_) => schedule.why_no_reduction(block, among),
    };
    // The update of a reduction whose initial statement stands elsewhere.
    let updates = node.init.is_none() && schedule.is_update(block, among);
    match incomplete {
        Some(why) if !updates => {
            let what = if node.init.is_some() { "no reduction" } else { "not complete" };
            refuse(block, format!("the block is {what}: {why}"))
        }
        _ => Ok(()),
    }
}
