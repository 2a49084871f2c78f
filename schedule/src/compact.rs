//! Buffers no larger than what of them is alive at once.
//!
//! A schedule leaves the buffers between blocks at their full size. Where all accesses to a buffer are inside of a loop, and each
//! step writes what it reads, the buffer is made anew in each step, as large as what that step accesses. Nests one after the other that
//! each write what they read of it, as the parts of a loop that was cut do, have a buffer each. Rows become longer in the end where a
//! block says so (`align.rs`).

use tenon_plugin_api::ir::{Build, BuildPrim, Dim, Expr, LoopKind, View};
use tenon_plugin_api::pass::{PassError, PrimFunc};

use crate::access::Access;
use crate::align::lengthen_rows;
use crate::bind_threads::{is_over_threads, scope_of};
use crate::index::{AtomId, Fit, Range, Space, Sum};
use crate::schedule::Schedule;
use crate::tree::{Id, Node};

/// Where a buffer is made, and the part of the old one that it is.
struct Place {
    /// The loop in whose body it is made; none for where it was made before.
    inside: Option<Id>,
    region: Vec<Range>,
}

/// A program whose own buffers are made where they are used, and as large as they are used there.
pub fn compact_buffers(program: &PrimFunc) -> Result<PrimFunc, PassError> {
    let mut schedule = Schedule::of(program)?;
    let mut has_changed = false;
    // Each of those that were made may be of several nests again, inside of the statement that it is for.
    let (mut all, mut at) = (allocs(&schedule), 0);
    while let Some(&(alloc, buffer)) = all.get(at) {
        let made = separate(&mut schedule, alloc, buffer);
        at += usize::from(made.is_empty());
        has_changed |= !made.is_empty();
        all.extend(made);
    }
    for (alloc, buffer) in allocs(&schedule) {
        let mut space = schedule.space();
        if let Some(place) = find_place(&schedule, &mut space, alloc, buffer) {
            shrink(&mut schedule, &space, alloc, buffer, &place);
            has_changed = true;
        }
    }
    has_changed |= lengthen_rows(&mut schedule);
    match has_changed {
        true => schedule.finish(),
        false => Ok(program.clone()),
    }
}

/// Makes a buffer where it is used, as small as that, when in the loops around it everything that is read was written before;
/// whether that is so.
pub(crate) fn compact_own(schedule: &mut Schedule, alloc: Id, buffer: Expr) -> bool {
    let mut space = schedule.space();
    let Some(Uses { accesses, blocks, outer, .. }) = Uses::of(schedule, &mut space, alloc, buffer)
    else {
        return false;
    };
    if !writes_what_it_reads(schedule, &mut space, buffer, &accesses, &blocks, &outer) {
        return false;
    }
    if let Some(place) = find_place(schedule, &mut space, alloc, buffer) {
        shrink(schedule, &space, alloc, buffer, &place);
    }
    true
}

fn allocs(schedule: &Schedule) -> Vec<(Id, Expr)> {
    let all = schedule.tree.all().into_iter();
    let made = all.filter_map(|id| match schedule.tree.get(id) {
        &Node::Alloc(buffer) => Some((id, buffer)),
        _ => None,
    });
    made.collect()
}

/// Where a buffer is used.
struct Uses {
    accesses: Vec<Access>,
    /// The block of each access, of the scope in which the buffer is made.
    blocks: Vec<Id>,
    /// The loops around all of them that are inside of the one in which it is made now, outermost first.
    loops: Vec<Id>,
    /// The variables of the loops, and of the blocks, around the statement that makes it.
    outer: Vec<AtomId>,
}

impl Uses {
    /// None where an access is of no block, or its indices are not known.
    fn of(schedule: &Schedule, space: &mut Space, alloc: Id, buffer: Expr) -> Option<Self> {
        let mut accesses = schedule.bound_accesses(space, schedule.tree.root);
        accesses.retain(|access| access.buffer == buffer);
        if accesses.is_empty() || accesses.iter().any(|access| access.indices.is_none()) {
            return None;
        }
        let scope = schedule.tree.scope(alloc);
        let blocks: Vec<Id> = accesses
            .iter()
            .map(|access| only_block_around(schedule, access.stmt, scope))
            .collect::<Option<_>>()?;
        let around = schedule.tree.parent(alloc);
        let mut loops = schedule.tree.loops_around(blocks[0]);
        loops.retain(|&each| blocks.iter().all(|&block| schedule.tree.is_inside(block, each)));
        loops.retain(|&each| {
            around.is_none_or(|around| around != each && !schedule.tree.is_inside(around, each))
        });
        // What the threads of a block share is made before them.
        if scope_of(schedule, buffer) == "shared" {
            let threads = loops.iter().position(|&each| is_over_threads(schedule, each));
            loops.truncate(threads.unwrap_or(loops.len()));
        }
        let outer = around.map_or(Vec::new(), |around| schedule.outside(space, around));
        Some(Self { accesses, blocks, loops, outer })
    }

    /// Those inside of a statement.
    fn inside(&self, schedule: &Schedule, stmt: Id) -> (Vec<Access>, Vec<Id>) {
        let pairs = self.accesses.iter().zip(&self.blocks);
        pairs
            .filter(|(_, block)| **block == stmt || schedule.tree.is_inside(**block, stmt))
            .map(|(access, &block)| (access.clone(), block))
            .unzip()
    }
}

/// Gives each of several statements in a row that write what they read of a buffer one of its own, and the first the buffer; those that
/// are made.
fn separate(schedule: &mut Schedule, alloc: Id, buffer: Expr) -> Vec<(Id, Expr)> {
    let (mut space, mut own_buffers) = (schedule.space(), Vec::new());
    let Some(uses) = Uses::of(schedule, &mut space, alloc, buffer) else { return own_buffers };
    let mut outer = uses.outer.clone();
    outer.extend(uses.loops.iter().filter_map(|&id| space.find(schedule.tree.as_for(id)?.var)));
    let around = match (uses.loops.last(), schedule.tree.parent(alloc)) {
        (Some(&innermost), _) => schedule.tree.body_of(innermost),
        (None, Some(parent)) => parent,
        (None, None) => return own_buffers,
    };
    let mut users = Vec::new();
    for stmt in schedule.tree.children(around) {
        let (accesses, blocks) = uses.inside(schedule, stmt);
        if accesses.is_empty() {
            continue;
        }
        // What a predicate leaves out of the buffer may be what another statement wrote.
        let pairs = accesses.iter().zip(&blocks);
        let leaves_nothing_out = pairs
            .map(|(access, &block)| leaves_nothing_out(schedule, &mut space, block, access))
            .collect::<Vec<bool>>();
        if leaves_nothing_out.contains(&false)
            || !writes_what_it_reads(schedule, &mut space, buffer, &accesses, &blocks, &outer)
        {
            return own_buffers;
        }
        users.push(stmt);
    }
    for &stmt in users.iter().skip(1) {
        let shape = schedule.shape(buffer);
        let own = schedule.buffer_like(buffer, &shape);
        schedule.redirect(stmt, buffer, own, |_, axis, indices| indices[axis]);
        let made = schedule.tree.add(Node::Alloc(own));
        schedule.tree.insert(alloc, true, vec![made]);
        own_buffers.push((made, own));
    }
    own_buffers
}

/// Whether all that the predicate of a block leaves out of an access lies outside of the buffer.
fn leaves_nothing_out(schedule: &Schedule, space: &mut Space, id: Id, access: &Access) -> bool {
    let Some(block) = schedule.tree.as_block(id) else { return false };
    let Some(predicate) = block.predicate else { return true };
    let Some(indices) = &access.indices else { return false };
    let ends: Vec<[Sum; 2]> = schedule
        .whole(space, access.buffer)
        .iter()
        .zip(indices)
        .map(|(axis, index)| [index.clone(), axis.extent.add_int(-1).sub(index)])
        .collect();
    schedule.conjuncts(predicate).into_iter().all(|part| {
        schedule.slack(space, part).is_some_and(|slack| {
            ends.iter().flatten().any(|inside| space.is_natural(&slack.sub(inside)))
        })
    })
}

/// The innermost loop in which a buffer can be made, when that makes it smaller.
fn find_place(schedule: &Schedule, space: &mut Space, alloc: Id, buffer: Expr) -> Option<Place> {
    let Uses { accesses, blocks, loops, mut outer } = Uses::of(schedule, space, alloc, buffer)?;
    let mut best = None;
    for inside in std::iter::once(None).chain(loops.into_iter().map(Some)) {
        if let Some(id) = inside {
            outer.extend(schedule.tree.as_for(id).and_then(|each| space.find(each.var)));
            if !writes_what_it_reads(schedule, space, buffer, &accesses, &blocks, &outer) {
                continue;
            }
        }
        let met: Vec<&Access> = accesses.iter().collect();
        let is_fixed = |atom: AtomId| outer.contains(&atom);
        let region = schedule.region(space, buffer, &met, &is_fixed);
        if !region.iter().all(|range| range.extent.value().is_some_and(|extent| extent > 0)) {
            continue;
        }
        let is_shared = inside.is_some_and(|inside| is_in_parallel(schedule, inside));
        if !is_shared || bytes(schedule, buffer, &region) <= OF_A_THREAD {
            best = Some(Place { inside, region });
        }
    }
    let place = best?;
    let whole = schedule.whole(space, buffer);
    let is_same = place.inside.is_none() && place.region == whole;
    (!is_same || is_small(schedule, buffer)).then_some(place)
}

/// The one block of a scope around a statement. None where it is in no block of it, or in one of one.
fn only_block_around(schedule: &Schedule, stmt: Id, scope: Option<Id>) -> Option<Id> {
    let mut blocks = std::iter::once(stmt)
        .chain(schedule.tree.ancestors(stmt))
        .take_while(|&id| Some(id) != scope)
        .filter(|&id| schedule.tree.as_block(id).is_some());
    let block = blocks.next()?;
    blocks.next().is_none().then_some(block)
}

/// Whether, while the outer variables stay what they are, everything that is read is among what was written before.
pub(crate) fn writes_what_it_reads(
    schedule: &Schedule,
    space: &mut Space,
    buffer: Expr,
    accesses: &[Access],
    blocks: &[Id],
    outer: &[AtomId],
) -> bool {
    let is_fixed = |atom: AtomId| outer.contains(&atom);
    let mut of = |block: Id, is_store: bool| -> Vec<Range> {
        let own: Vec<&Access> = accesses
            .iter()
            .zip(blocks)
            .filter(|(access, other)| **other == block && access.is_store == is_store)
            .map(|(access, _)| access)
            .collect();
        schedule.region(space, buffer, &own, &is_fixed)
    };
    let mut writers: Vec<Id> = Vec::new();
    let mut readers: Vec<Id> = Vec::new();
    for (access, &block) in accesses.iter().zip(blocks) {
        let list = if access.is_store { &mut writers } else { &mut readers };
        if !list.contains(&block) {
            list.push(block);
        }
    }
    let regions: Vec<(Id, Vec<Range>)> =
        writers.iter().map(|&block| (block, of(block, true))).collect();
    let reads: Vec<(Id, Vec<Range>)> =
        readers.iter().map(|&block| (block, of(block, false))).collect();
    reads.iter().all(|(reader, read)| {
        let starts_itself = starts_itself(schedule, space, *reader, outer);
        let mut before: Vec<Vec<Range>> = Vec::new();
        for (writer, written) in &regions {
            // Statements stand in the order of their numbers in a walk; a block reads its own only once it was started.
            let is_before = match writer == reader {
                true => starts_itself,
                false => stands_before(schedule, *writer, *reader),
            };
            if is_before && writes_all(schedule, space, *writer, outer) {
                before.push(written.clone());
            }
        }
        joined(before).iter().any(|written| covers(space, written, read))
    })
}

/// Whether a block starts what it reads of its own, while the outer variables stay: a reduction does in the first of its steps, so
/// these do not go through it.
fn starts_itself(schedule: &Schedule, space: &mut Space, id: Id, outer: &[AtomId]) -> bool {
    let Some(block) = schedule.tree.as_block(id).filter(|block| block.init.is_some()) else {
        return false;
    };
    block.iters.iter().filter(|iter| schedule.is_reduce(iter.kind)).all(|iter| {
        let binding = space.read(schedule.body(), iter.binding);
        space.nodes_of(&binding).iter().all(|atom| !outer.contains(atom))
    })
}

/// Regions with those that lie end to end as one, as the parts of a loop that was cut write them.
fn joined(mut regions: Vec<Vec<Range>>) -> Vec<Vec<Range>> {
    let mut at = 0;
    while at < regions.len() {
        let next = (0..regions.len())
            .find_map(|other| Some((other, with_behind(&regions[at], &regions[other])?)));
        match next {
            Some((other, both)) => {
                regions[at] = both;
                regions.remove(other);
                at = 0;
            }
            None => at += 1,
        }
    }
    regions
}

/// A region with one that goes on where it ends, along one axis.
fn with_behind(first: &[Range], next: &[Range]) -> Option<Vec<Range>> {
    let mut differ = (0..first.len()).filter(|&axis| first[axis] != next[axis]);
    let (axis, None) = (differ.next()?, differ.next()) else { return None };
    let mut both = first.to_vec();
    (first[axis].min.add(&first[axis].extent) == next[axis].min).then(|| {
        both[axis].extent = both[axis].extent.add(&next[axis].extent);
        both
    })
}

fn stands_before(schedule: &Schedule, a: Id, b: Id) -> bool {
    let order = schedule.tree.all();
    let place = |id: Id| order.iter().position(|&other| other == id);
    place(a) < place(b)
}

fn covers(space: &Space, written: &[Range], read: &[Range]) -> bool {
    written.iter().zip(read).all(|(written, read)| {
        let left = written.min.add(&written.extent).sub(&read.min.add(&read.extent));
        space.is_natural(&read.min.sub(&written.min)) && space.is_natural(&left)
    })
}

/// Whether a block writes every element of the box around what it writes, while the outer variables stay.
pub(crate) fn writes_all(schedule: &Schedule, space: &mut Space, id: Id, outer: &[AtomId]) -> bool {
    let Some(block) = schedule.tree.as_block(id) else { return false };
    if let Some(predicate) = block.predicate
        && !schedule.is_domain_predicate(space, id, predicate)
    {
        return false;
    }
    if schedule.tree.walk(id).into_iter().any(|stmt| may_skip_a_store(schedule, stmt)) {
        return false;
    }
    let mut vars = schedule.loop_atoms(space, id);
    vars.retain(|var| !outer.contains(var));
    let bindings = schedule.bindings(space, id);
    let iters: Vec<AtomId> =
        block.iters.iter().filter_map(|iter| space.node(iter.var).as_atom()).collect();
    let is_plain =
        schedule.accesses(space, id).iter().filter(|access| access.is_store).all(|access| {
            let mut seen = Vec::new();
            access.indices.as_ref().is_some_and(|indices| {
                indices.iter().all(|index| {
                    let is_outer = |sum: &Sum| {
                        space.nodes_of(sum).into_iter().all(|atom| outer.contains(&atom))
                    };
                    // An iterator, moved by what stays.
                    let is_moved = |&&atom: &&AtomId| {
                        let parts = index.linear_in(atom);
                        parts.is_some_and(|(factor, rest)| {
                            factor.value() == Some(1) && is_outer(&rest)
                        })
                    };
                    match iters.iter().filter(|atom| !seen.contains(*atom)).find(is_moved) {
                        Some(&atom) => {
                            seen.push(atom);
                            true
                        }
                        None => is_outer(index),
                    }
                })
            })
        });
    is_plain && space.coverage_with(&bindings, &vars, Fit::Overlap).is_some()
}

/// Bytes of a buffer that is made in registers, or on the stack.
const SMALL: i64 = 1 << 14;
/// Bytes of a buffer that each step of a parallel loop may make: it stands on the stack of a thread.
const OF_A_THREAD: i64 = 1 << 16;

/// Whether a buffer of no scope is as large as what stays near.
fn is_small(schedule: &Schedule, buffer: Expr) -> bool {
    let body = schedule.body();
    let View::Buffer { scope, .. } = body.view(buffer) else { return false };
    let is_free = body.terms().str(scope).is_empty();
    let whole = schedule.whole(&mut schedule.space(), buffer);
    is_free && bytes(schedule, buffer, &whole) <= SMALL
}

/// The bytes of a region of a buffer; those of one whose extents are not known are beyond all limits.
fn bytes(schedule: &Schedule, buffer: Expr, region: &[Range]) -> i64 {
    let body = schedule.body();
    let tensor = body.ty(buffer).and_then(|ty| body.terms().tensor(ty));
    let element = tensor.map_or(8, |(dtype, _)| (dtype.bits() as i64).max(8) / 8);
    region.iter().fold(element, |bytes, range| {
        bytes.saturating_mul(range.extent.value().unwrap_or(i64::MAX))
    })
}

fn is_in_parallel(schedule: &Schedule, inside: Id) -> bool {
    let is_parallel =
        |id: Id| schedule.tree.as_for(id).is_some_and(|each| each.kind == LoopKind::Parallel);
    is_parallel(inside) || schedule.tree.ancestors(inside).any(is_parallel)
}

/// Whether a statement is a choice that is not just one of values for one element.
fn may_skip_a_store(schedule: &Schedule, id: Id) -> bool {
    let Node::If { then, otherwise, .. } = schedule.tree.get(id) else { return false };
    let store = |id: Id| match schedule.tree.get(id) {
        Node::Store { buffer, indices, .. } => Some((*buffer, indices)),
        _ => None,
    };
    let others = otherwise.and_then(store);
    others.is_none() || store(*then) != others
}

/// Makes a part of a buffer in its place, and has every access read and write that.
fn shrink(schedule: &mut Schedule, space: &Space, alloc: Id, buffer: Expr, place: &Place) {
    let cx = schedule.rw.cx();
    let shape: Vec<Dim> = place.region.iter().map(|range| space.dim(&cx, &range.extent)).collect();
    let new = schedule.buffer_like(buffer, &shape);
    let new = if is_small(schedule, new) { schedule.in_scope(new, "local") } else { new };
    let starts: Vec<Expr> =
        place.region.iter().map(|range| space.build(&mut schedule.rw, &range.min)).collect();
    schedule.redirect(schedule.tree.root, buffer, new, |rw, axis, indices| {
        rw.sub(indices[axis], starts[axis])
    });
    match place.inside {
        None => *schedule.tree.get_mut(alloc) = Node::Alloc(new),
        Some(inside) => {
            schedule.tree.remove(alloc);
            let made = schedule.tree.add(Node::Alloc(new));
            let body = schedule.tree.body_of(inside);
            let first = match schedule.tree.get(body) {
                Node::Seq(stmts) => stmts.first().copied().unwrap_or(body),
                _ => body,
            };
            schedule.tree.insert(first, false, vec![made]);
        }
    }
}
