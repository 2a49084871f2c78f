//! A loop whose statements work on several of its steps at once.
//!
//! ```ir
//! for %k in 0..8 {                          block "A_shared" … %A_shared[0, …]                 the first steps of early stages
//!   block "A_shared" … stage 0      =>      for %k in 0..7 { block "A_shared" … [(%k + 1) % 2, …]
//!   block "C" …        stage 1                               block "C" … [%k % 2, …] }
//! }                                         block "C" … %A_shared[1, …]                        the last steps of late ones
//! ```
//!
//! A statement of stage `s` runs `s` steps behind those of stage zero: what is fetched for the next step is on its way while this one
//! computes. Within a step statements run in the order that is given. A statement that needs what another one makes in the same step
//! comes behind it, in stage or in order. A buffer that no one else uses keeps as many steps as are in work at once.

use tenon_plugin_api::ir::{Expr, LoopKind};

use crate::access::Access;
use crate::index::{AtomId, Range, Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{For, Id, Node};

use super::fuse::plain;
use super::kinds::{is_buffer_apart, shared_at_once};
use super::split::rename_blocks;

pub(super) static PIPELINE: Primitive = Primitive {
    name: "pipeline",
    version: 1,
    summary: "Runs the statements of a loop, each in its stage, so many steps behind one another.",
    params: &[
        Param::new("loop", Kind::Loop),
        Param::new("stages", Kind::Ints),
        Param::new("order", Kind::Ints).or("[]"),
    ],
    apply,
};

/// A statement of the loop.
#[derive(Clone, Copy)]
struct Part {
    stmt: Id,
    stage: i64,
    /// Its place among those that run in one step.
    place: i64,
}

impl Part {
    /// Whether it runs before another one does that is `later` steps ahead of it.
    fn is_before(&self, other: &Part, later: i64) -> bool {
        (self.stage, self.place) < (other.stage + later, other.place)
    }
}

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let each = plain(schedule, id)?.clone();
    if each.kind != LoopKind::Serial {
        return refuse(id, "the steps of the loop do not come one after the other");
    }
    schedule.only_blocks(id)?;
    let parts = parts(schedule, id, &args.factors(1), &args.factors(2))?;
    let last = parts.iter().map(|part| part.stage).max().unwrap_or(0);
    let mut space = schedule.space();
    let [min, extent] = [each.min, each.extent].map(|end| space.read(schedule.body(), end));
    if !space.is_natural(&extent.add_int(-last)) {
        return refuse(
            id,
            format!("the loop is not known to have {last} steps, one for each stage"),
        );
    }
    let buffers = check_order(schedule, &mut space, id, each.var, &parts)?;
    for buffer in buffers {
        wrap(schedule, &mut space, id, each.var, buffer, &parts);
    }
    let mut ordered = parts;
    ordered.sort_by_key(|part| part.place);
    let early = filled(schedule, &mut space, &ordered, &each, &min, last);
    let done = min.add(&extent);
    let late = drained(schedule, &mut space, &ordered, &each, &done, last);
    // What is left runs all stages in each step.
    let shorter = space.build(&mut schedule.rw, &extent.add_int(-last));
    for part in &ordered {
        let value = space.node(each.var).add_int(last - part.stage);
        let value = space.build(&mut schedule.rw, &value);
        schedule.substitute(part.stmt, [(each.var, value)]);
    }
    schedule.tree.for_mut(id).extent = shorter;
    if let Node::Seq(stmts) = schedule.tree.get_mut(each.body) {
        let is_part = |stmt: &Id| ordered.iter().any(|part| part.stmt == *stmt);
        let others: Vec<Id> = stmts.iter().copied().filter(|stmt| !is_part(stmt)).collect();
        *stmts = others.into_iter().chain(ordered.iter().map(|part| part.stmt)).collect();
    }
    schedule.tree.insert(id, true, late);
    schedule.tree.insert(id, false, early);
    Ok(vec![Loop(id).into()])
}

/// The statements of the loop with their stages.
fn parts(
    schedule: &Schedule,
    id: Id,
    stages: &[Option<i64>],
    order: &[Option<i64>],
) -> Result<Vec<Part>> {
    let stmts = schedule.tree.children(schedule.tree.body_of(id));
    if !matches!(schedule.tree.get(schedule.tree.body_of(id)), Node::Seq(_)) {
        return refuse(id, "the loop holds one statement, and a pipeline needs several");
    }
    let is_alloc = |stmt: &&Id| matches!(schedule.tree.get(**stmt), Node::Alloc(_));
    if let Some(&alloc) = stmts.iter().find(is_alloc) {
        return refuse(alloc, "a buffer that each step makes anew cannot be read by a later one");
    }
    let count = stmts.len();
    let stages: Vec<i64> = stages.iter().copied().flatten().collect();
    let mut places: Vec<i64> = order.iter().copied().flatten().collect();
    if places.is_empty() {
        places = (0..count as i64).collect();
    }
    let mut sorted = places.clone();
    sorted.sort_unstable();
    if stages.len() != count || !sorted.into_iter().eq(0..count as i64) {
        return refuse(
            id,
            format!(
                "the loop holds {count} statements, each of which has a stage and a place of its own"
            ),
        );
    }
    if stages.iter().min() != Some(&0) || stages.iter().any(|&stage| stage > count as i64) {
        return refuse(
            id,
            format!("stages are numbers from 0 to {count}, and there is a first one"),
        );
    }
    let all = stmts.into_iter().zip(stages).zip(places);
    Ok(all.map(|((stmt, stage), place)| Part { stmt, stage, place }).collect())
}

/// Refuses stages in which something would be read before it is written, or after it is written anew; the buffers between stages.
fn check_order(
    schedule: &Schedule,
    space: &mut Space,
    id: Id,
    var: Expr,
    parts: &[Part],
) -> Result<Vec<Expr>> {
    let accesses = schedule.bound_accesses(space, id);
    let outside = schedule.outside(space, id);
    let Some(var) = space.find(var) else { return refuse(id, "it is no loop") };
    let mut between = Vec::new();
    for buffer in schedule.buffers(id, true) {
        let mut met: Vec<(&Access, &Part)> = Vec::new();
        for access in accesses.iter().filter(|access| access.buffer == buffer) {
            let part = parts.iter().find(|part| schedule.tree.is_inside(access.stmt, part.stmt));
            met.extend(part.map(|part| (access, part)));
        }
        let all: Vec<&Access> = met.iter().map(|(access, _)| *access).collect();
        let rank = schedule.shape(buffer).len();
        let is_apart = is_buffer_apart(space, &all, rank, var, &|atom| outside.contains(&atom));
        for (at, (access, part)) in met.iter().enumerate() {
            for (other, next) in met[at..].iter().filter(|(_, next)| next.stmt != part.stmt) {
                if !(access.is_store || other.is_store) {
                    continue;
                }
                let name = schedule.var_name(buffer);
                if !part.is_before(next, 0) {
                    return refuse(
                        next.stmt,
                        format!(
                            "it uses `{name}` behind another statement, and would run before it"
                        ),
                    );
                }
                if !is_apart && !next.is_before(part, 1) {
                    return refuse(
                        part.stmt,
                        format!("its next step would use `{name}` before this one is done with it"),
                    );
                }
                if part.stage != next.stage && !between.contains(&buffer) {
                    between.push(buffer);
                }
            }
        }
    }
    Ok(between)
}

/// Has a buffer between stages keep as many steps as are in work at once, where nobody else uses it and each step has a part of its own
/// along one axis.
fn wrap(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    var: Expr,
    buffer: Expr,
    parts: &[Part],
) {
    let root = schedule.tree.root;
    let all = schedule.bound_accesses(space, root);
    let met: Vec<&Access> = all.iter().filter(|access| access.buffer == buffer).collect();
    let is_elsewhere = |access: &&Access| !schedule.tree.is_inside(access.stmt, id);
    if met.iter().any(is_elsewhere)
        || !schedule.all_allocated().contains(&buffer)
        || shared_at_once(schedule, id, buffer).is_some()
    {
        return;
    }
    let outside = schedule.outside(space, id);
    let Some(var) = space.find(var) else { return };
    let region = schedule.region(space, buffer, &met, &|atom| outside.contains(&atom));
    let stages: Vec<i64> = parts
        .iter()
        .filter(|part| {
            [true, false].iter().any(|&it| schedule.buffers(part.stmt, it).contains(&buffer))
        })
        .map(|part| part.stage)
        .collect();
    let (Some(first), Some(last)) = (stages.iter().min(), stages.iter().max()) else { return };
    let steps = last - first + 1;
    let whole = schedule.whole(space, buffer);
    for (axis, (range, whole)) in region.iter().zip(&whole).enumerate() {
        let Some(kept) = kept(space, range, var, steps) else { continue };
        // As much as there is anyway is no less.
        if whole.extent.value().is_none_or(|extent| kept < extent) {
            schedule.wrap(buffer, axis, kept);
            return;
        }
    }
}

/// The elements of so many steps along an axis on which each step has its own.
fn kept(space: &Space, range: &Range, var: AtomId, steps: i64) -> Option<i64> {
    let (step, rest) = range.min.linear_in(var)?;
    let (step, extent) = (step.value()?, range.extent.value()?);
    let is_own = !space.holds(&rest, var) && 0 < extent && extent <= step;
    is_own.then(|| step.checked_mul(steps))?
}

/// The steps of early stages before all of them have something to do.
fn filled(
    schedule: &mut Schedule,
    space: &mut Space,
    parts: &[Part],
    each: &For,
    min: &Sum,
    last: i64,
) -> Vec<Id> {
    let mut made = Vec::new();
    for time in 0..last {
        for part in parts.iter().filter(|part| part.stage <= time) {
            let step = min.add_int(time - part.stage);
            made.push(single(schedule, space, part, each, &step, &format!("fill{time}")));
        }
    }
    made
}

/// The steps of late stages when the others are done.
fn drained(
    schedule: &mut Schedule,
    space: &mut Space,
    parts: &[Part],
    each: &For,
    end: &Sum,
    last: i64,
) -> Vec<Id> {
    let mut made = Vec::new();
    for time in 0..last {
        for part in parts.iter().filter(|part| part.stage > time) {
            let step = end.add_int(time - part.stage);
            made.push(single(schedule, space, part, each, &step, &format!("drain{time}")));
        }
    }
    made
}

/// One step of a statement.
fn single(
    schedule: &mut Schedule,
    space: &mut Space,
    part: &Part,
    each: &For,
    step: &Sum,
    suffix: &str,
) -> Id {
    let copy = schedule.copy(part.stmt);
    rename_blocks(schedule, copy, suffix);
    let value = space.build(&mut schedule.rw, step);
    schedule.substitute(copy, [(each.var, value)]);
    copy
}
