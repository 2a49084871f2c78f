//! Several loops of one.
//!
//! ```ir
//! for %i in 0..130 {                         for %i_0 in 0..9 { for %i_1 in 0..16 {
//!   block "B" (%v: spatial = %i) …     =>        block "B" (%v: spatial in 0..130 = %i_0 * 16 + %i_1)
//! }                                                  where %i_0 * 16 + %i_1 < 130 …
//! ```
//!
//! The *tail* is what is left where the factors do not divide the extent:
//!
//! * `guard`: the last steps run under a condition, which is a predicate of the blocks (`GuardWithIf` of Halide);
//! * `mask`: the same for steps that will be lanes of vectors (`Predicate` of Halide): lowering makes a mask of the condition, so
//!   that the last vector is as wide as the others and leaves lanes out. Refused where it could not;
//! * `cut`: a second nest takes the rest, so that the first has no condition;
//! * `shift`: the last step starts earlier and overlaps the one before (`ShiftInwards` of Halide); for blocks that write what
//!   they compute of their inputs alone, and an extent of at least one step;
//! * `pad`: the last steps run as the others do (`RoundUp` of Halide), in copies of the buffers that are as large: `pad_einsum`. The
//!   blocks that copy are given behind the loops;
//! * `perfect`: refused unless there is no tail.

use tenon_plugin_api::ir::{Expr, LoopKind};

use crate::exprs::divides;
use crate::index::{Range, Space, Sum};
use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{For, Id, Iter, Node};

use super::fuse::plain;
use super::kinds::independent;
use super::pad_einsum::pad_to;

pub(super) static SPLIT: Primitive = Primitive {
    name: "split",
    version: 1,
    summary: "Makes nested loops of one, with these numbers of steps; `_` is what is needed.",
    params: &[
        Param::new("loop", Kind::Loop),
        Param::new("factors", Kind::Factors),
        Param::new("tail", Kind::Word(&["guard", "mask", "cut", "shift", "pad", "perfect"]))
            .or("guard"),
    ],
    apply,
};

/// Steps of nested loops, or elements of a padded axis, at most: extents of so many can be added.
pub(super) const MOST_STEPS: i64 = 1 << 48;

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let each = plain(schedule, id)?.clone();
    let mut space = schedule.space();
    let extent = space.read(schedule.body(), each.extent);
    let factors = factors(&mut space, id, &extent, &args.factors(1))?;
    let total = product(id, &factors)?;
    let is_perfect = total == extent;
    if is_perfect {
        return Ok(nest(schedule, &mut space, id, &each, &factors, None));
    }
    if !space.is_natural(&total.sub(&extent)) {
        return refuse(
            id,
            "the product of the factors is not known to reach the extent of the loop",
        );
    }
    match args.text(2) {
        "perfect" => refuse(id, "the factors are not known to divide the extent of the loop"),
        "mask" => {
            maskable(schedule, id, &factors)?;
            Ok(nest(schedule, &mut space, id, &each, &factors, Some(&extent)))
        }
        "cut" => cut(schedule, &mut space, id, &each, &extent, &factors),
        "shift" => shift(schedule, &mut space, id, &each, &extent, &factors),
        "pad" => pad(schedule, &mut space, id, &factors),
        _ => Ok(nest(schedule, &mut space, id, &each, &factors, Some(&extent))),
    }
}

/// The number of steps of each loop, the open one what is needed.
fn factors(space: &mut Space, id: Id, extent: &Sum, given: &[Option<i64>]) -> Result<Vec<Sum>> {
    if given.is_empty() {
        return Err(Refusal::new("no factor is given").at(id));
    }
    if given.iter().filter(|factor| factor.is_none()).count() > 1 {
        return refuse(id, "more than one factor is open");
    }
    if let Some(wrong) = given.iter().flatten().find(|&&factor| factor <= 0) {
        return refuse(id, format!("the factor {wrong} is not positive"));
    }
    let product =
        given.iter().flatten().try_fold(1i64, |product, &factor| product.checked_mul(factor));
    let Some(product) = product.filter(|&product| product <= MOST_STEPS) else {
        return refuse(id, "the product of the factors is too large");
    };
    let open = space.ceil_div(extent, &Sum::int(product));
    Ok(given.iter().map(|factor| factor.map_or(open.clone(), Sum::int)).collect())
}

fn product(id: Id, factors: &[Sum]) -> Result<Sum> {
    match factors.iter().try_fold(Sum::int(1), |product, factor| product.mul(factor)) {
        Some(product) => Ok(product),
        None => refuse(id, "the product of the factors is too long"),
    }
}

/// Nested loops in the place of one. With `limit` steps beyond it are left out.
fn nest(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    each: &For,
    factors: &[Sum],
    limit: Option<&Sum>,
) -> Vec<Handle> {
    let (loops, value) = make_loops(schedule, space, each, factors, each.body);
    schedule.tree.replace(id, loops[0]);
    *schedule.tree.get_mut(id) = Node::Gone;
    let built = space.build(&mut schedule.rw, &value);
    schedule.substitute(each.body, [(each.var, built)]);
    if let Some(limit) = limit {
        let condition = schedule.less(space, &value, limit);
        guard(schedule, each.body, condition);
    }
    loops.into_iter().map(|id| Loop(id).into()).collect()
}

/// Loops of these extents around a body, and what the old variable is in terms of theirs.
fn make_loops(
    schedule: &mut Schedule,
    space: &mut Space,
    each: &For,
    factors: &[Sum],
    body: Id,
) -> (Vec<Id>, Sum) {
    let name = schedule.var_name(each.var);
    let mut value = Sum::default();
    let mut vars = Vec::new();
    for (at, factor) in factors.iter().enumerate() {
        let var = schedule.index_var(&format!("{name}_{at}"));
        let range = Range { min: Sum::default(), extent: factor.clone() };
        space.set_range(var, range);
        // A loop of one step stays at zero.
        let own = if factor.value() == Some(1) { Sum::default() } else { space.node(var) };
        value = value.mul(factor).unwrap_or_default().add(&own);
        vars.push(var);
    }
    let mut body = body;
    let mut loops = Vec::new();
    for (at, (var, factor)) in vars.into_iter().zip(factors).enumerate().rev() {
        let (min, extent) = (schedule.int(0), space.build(&mut schedule.rw, factor));
        // Parallel loops do not nest: the outermost is the one whose steps run on threads.
        let kind = match each.kind {
            LoopKind::Parallel if at > 0 => LoopKind::Serial,
            kind => kind,
        };
        let node = For { var, min, extent, kind, body, ..each.clone() };
        body = schedule.tree.make(Node::For(node));
        loops.push(body);
    }
    loops.reverse();
    (loops, value)
}

/// Runs what is inside a statement only where a condition holds: blocks have it in their predicate.
fn guard(schedule: &mut Schedule, root: Id, condition: Expr) {
    let mut stack = vec![root];
    while let Some(id) = stack.pop() {
        match schedule.tree.get(id) {
            Node::Block(_) => {
                let mut space = schedule.space();
                schedule.add_predicate(&mut space, id, &[condition]);
            }
            Node::Store { .. } | Node::Evaluate(_) | Node::If { .. } => {
                let hole = schedule.tree.add(Node::Gone);
                schedule.tree.replace(id, hole);
                let guarded = Node::If { cond: condition, then: id, otherwise: None };
                *schedule.tree.get_mut(hole) = guarded;
                schedule.tree.adopt(hole);
            }
            _ => stack.extend(schedule.tree.children(id)),
        }
    }
}

/// Refuses a loop of whose innermost steps lowering could not make lanes, some of them left out.
fn maskable(schedule: &Schedule, id: Id, factors: &[Sum]) -> Result<()> {
    if factors.len() < 2 || factors.last().is_none_or(|lanes| lanes.value().is_none()) {
        return refuse(
            id,
            "lanes are the last of at least two factors, and their number is constant",
        );
    }
    independent(schedule, id, false)?;
    for stmt in schedule.tree.walk(id) {
        let values: Vec<Expr> = match schedule.tree.get(stmt) {
            Node::Evaluate(_) => {
                return refuse(stmt, "a call with an effect has no lanes to leave out");
            }
            Node::If { cond: value, .. } | Node::Let { value, .. } => vec![*value],
            Node::Store { value, indices, .. } => indices.iter().copied().chain([*value]).collect(),
            _ => Vec::new(),
        };
        if values.into_iter().any(|value| divides(&schedule.rw, value)) {
            return refuse(stmt, "a lane that is left out may divide an integer by zero");
        }
    }
    Ok(())
}

/// A nest of whole steps, and behind it one for the rest.
fn cut(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    each: &For,
    extent: &Sum,
    factors: &[Sum],
) -> Result<Vec<Handle>> {
    let inner = product(id, &factors[1..])?;
    if factors.len() < 2 {
        return refuse(id, "a loop is cut in two nests by at least two factors");
    }
    let (steps, _) = space.divide(extent, &inner);
    let Some(done) = steps.mul(&inner) else { return refuse(id, "the extent is too long") };
    let done = space.rejoin(done);
    let rest = extent.sub(&done);
    // The rest has its own copy of the body, made while that is as it was.
    let copy = schedule.copy(each.body);
    rename_blocks(schedule, copy, "tail");
    let var = schedule.index_var(&format!("{}_tail", schedule.var_name(each.var)));
    space.set_range(var, Range { min: Sum::default(), extent: rest.clone() });
    let value = space.node(var).add(&done);
    let (min, rest_extent) = (schedule.int(0), space.build(&mut schedule.rw, &rest));
    let tail = For { var, min, extent: rest_extent, body: copy, ..each.clone() };
    let tail = schedule.tree.make(Node::For(tail));
    schedule.tree.insert(id, true, vec![tail]);
    let built = space.build(&mut schedule.rw, &value);
    schedule.substitute(copy, [(each.var, built)]);
    let mut outer = factors.to_vec();
    outer[0] = steps;
    let mut handles = nest(schedule, space, id, each, &outer, None);
    handles.push(Loop(tail).into());
    Ok(handles)
}

/// The last step starts earlier, so that it ends where the loop does.
fn shift(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    each: &For,
    extent: &Sum,
    factors: &[Sum],
) -> Result<Vec<Handle>> {
    let inner = product(id, &factors[1..])?;
    if !space.is_natural(&extent.sub(&inner)) {
        return refuse(id, "the loop is not known to have as many steps as are shifted");
    }
    if each.kind == LoopKind::Parallel {
        return refuse(id, "steps of a parallel loop may not overlap");
    }
    schedule.only_blocks(each.body)?;
    for block in schedule.tree.blocks_below(id) {
        if let Some(why) = schedule.why_incomplete(block, &[block]) {
            return refuse(block, format!("what it writes twice may differ: {why}"));
        }
    }
    let (loops, value) = make_loops(schedule, space, each, factors, each.body);
    schedule.tree.replace(id, loops[0]);
    *schedule.tree.get_mut(id) = Node::Gone;
    let first = schedule.tree.as_for(loops[0]).map(|each| each.var);
    let outer = first.map(|var| space.node(var)).unwrap_or_default();
    let start = outer.mul(&inner).unwrap_or_default();
    let within = value.sub(&start);
    let last = extent.sub(&inner);
    let start = space.min(&start, &last);
    let built = space.build(&mut schedule.rw, &start.add(&within));
    schedule.substitute(each.body, [(each.var, built)]);
    Ok(loops.into_iter().map(|id| Loop(id).into()).collect())
}

/// The loop goes through whole steps, in padded copies of the buffers.
fn pad(schedule: &mut Schedule, space: &mut Space, id: Id, factors: &[Sum]) -> Result<Vec<Handle>> {
    let Some(multiple) = product(id, &factors[1..])?.value() else {
        return refuse(
            id,
            "buffers are padded to a multiple of a number, which the factors are not",
        );
    };
    let Some(block) = schedule.only_block(id) else {
        return refuse(
            id,
            "the loop does not hold exactly one block, whose buffers could be padded",
        );
    };
    let var = schedule.tree.as_for(id).map(|each| each.var);
    let iters = schedule.tree.as_block(block).map_or(&[][..], |block| &block.iters);
    let of = |iter: &Iter| if Some(iter.binding) == var { multiple } else { 1 };
    let multiples: Vec<i64> = iters.iter().map(of).collect();
    if !multiples.contains(&multiple) {
        return refuse(block, "none of its iterators is bound to the loop alone");
    }
    let copies = pad_to(schedule, block, &multiples)?;
    let each = plain(schedule, id)?.clone();
    let extent = space.read(schedule.body(), each.extent);
    if product(id, factors)? != extent {
        return refuse(id, "the factors do not divide the extent that the loop has with padding");
    }
    let mut handles = nest(schedule, space, id, &each, factors, None);
    handles.extend(copies);
    Ok(handles)
}

/// Says of the blocks of a copy which they are.
pub(super) fn rename_blocks(schedule: &mut Schedule, root: Id, suffix: &str) {
    for id in schedule.tree.walk(root) {
        if schedule.tree.as_block(id).is_some() {
            let name = format!("{}_{suffix}", schedule.block_name(id));
            schedule.tree.block_mut(id).name = schedule.symbol(&name);
        }
    }
}
