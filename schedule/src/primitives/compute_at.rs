//! A block inside of a loop of another one.
//!
//! ```ir
//! for %i … { block "B" … }                          for %i … {
//! for %i … { for %j … { block "C" … } }      =>       for %ax1 … { block "B" … }
//!                                                     for %j … { block "C" … } }
//! ```
//!
//! `compute_at` brings a producer to those who read it: in each step of the loop it computes what they read there.
//! `reverse_compute_at` brings a consumer to those who write for it: it runs where they have written in that step. The region
//! over which the block runs is told by the index arithmetic of both; what may lie beyond its domain is left out by a
//! predicate. The buffer between them keeps its size: lowering makes it as small as what is alive at once.

use tenon_plugin_api::ir::Expr;

use crate::access::Access;
use crate::compact::writes_what_it_reads;
use crate::index::{AtomId, Range, Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{Id, Iter, Node};

use super::sample::compute_there;

const PLACE: Param = Param::new("place", Kind::Word(&["last", "first"])).or("last");

pub(super) static COMPUTE_AT: Primitive = Primitive {
    name: "compute_at",
    version: 1,
    summary: "Computes a block inside a loop of those that read it, as much as they read in one step.",
    params: &[Param::new("block", Kind::Block), Param::new("loop", Kind::Place), PLACE],
    apply: compute_at,
};

pub(super) static REVERSE_COMPUTE_AT: Primitive = Primitive {
    name: "reverse_compute_at",
    version: 1,
    summary: "Runs a block inside a loop of those that write for it, over what they write in one step.",
    params: &[Param::new("block", Kind::Block), Param::new("loop", Kind::Loop), PLACE],
    apply: reverse_compute_at,
};

fn compute_at(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    compute_there(schedule, args.id(0), args.place(1), args.text(2))?;
    Ok(Vec::new())
}

/// Computes a block in a loop of those that read it; `wish` is the place among those that it may have.
pub(super) fn move_to(schedule: &mut Schedule, id: Id, at: Id, wish: &str) -> Result<()> {
    let among = check(schedule, id, at)?;
    if schedule.is_output(id) {
        return refuse(id, "it writes what is read outside of its scope");
    }
    check_kind(schedule, id, &among)?;
    let consumers = schedule.consumers_of(id);
    if consumers.is_empty() {
        return refuse(id, "nobody reads what it writes");
    }
    all_inside(
        schedule,
        &consumers,
        at,
        "it requires all the consumers of the block under the loop",
    )?;
    let place = place(schedule, at, &schedule.producers_of(id), &consumers, wish)?;
    let mut space = schedule.space();
    let ranges = ranges_for(schedule, &mut space, id, at, &consumers, true)?;
    relocate(schedule, &mut space, id, at, place, ranges);
    Ok(())
}

fn reverse_compute_at(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    run_behind(schedule, args.id(0), args.id(1), args.text(2))?;
    Ok(Vec::new())
}

/// Runs a block in a loop of those that write what it reads; `wish` is the place among those that it may have.
pub(super) fn run_behind(schedule: &mut Schedule, id: Id, at: Id, wish: &str) -> Result<()> {
    let among = check(schedule, id, at)?;
    check_kind(schedule, id, &among)?;
    let producers = schedule.producers_of(id);
    if producers.is_empty() {
        return refuse(id, "it reads nothing that a block of its scope writes");
    }
    all_inside(
        schedule,
        &producers,
        at,
        "it requires all the producers of the block under the loop",
    )?;
    for &producer in &producers {
        check_finished(schedule, producer, at)?;
    }
    check_written(schedule, id, &producers)?;
    let is_choice = |&&stmt: &&Id| matches!(schedule.tree.get(stmt), Node::If { .. });
    if let Some(&choice) = schedule.tree.walk(id).iter().find(is_choice) {
        let why = "it runs where this does not hold as well, which is over more than was written";
        return refuse(choice, why);
    }
    let place = place(schedule, at, &producers, &schedule.consumers_of(id), wish)?;
    let mut space = schedule.space();
    let ranges = ranges_for(schedule, &mut space, id, at, &producers, false)?;
    relocate(schedule, &mut space, id, at, place, ranges);
    Ok(())
}

/// What both need; the blocks of the scope.
fn check(schedule: &Schedule, id: Id, at: Id) -> Result<Vec<Id>> {
    let scope = schedule.tree.scope(id);
    if schedule.tree.scope(at) != scope {
        return refuse(at, "the loop is of another scope than the block");
    }
    if schedule.tree.is_inside(id, at) {
        return refuse(at, "the loop is around the block already");
    }
    schedule.stage_pipeline(scope)?;
    if let Some(block) = schedule.tree.as_block(id)
        && let Some(predicate) = block.predicate
    {
        let mut space = schedule.space();
        if !schedule.is_domain_predicate(&mut space, id, predicate) {
            return refuse(id, "its predicate says more than that iterators stay in their domains");
        }
    }
    Ok(schedule.tree.blocks_of(scope))
}

fn check_kind(schedule: &Schedule, id: Id, among: &[Id]) -> Result<()> {
    let has_init = schedule.tree.as_block(id).is_some_and(|block| block.init.is_some());
    let (why, what) = match has_init {
        true => (schedule.why_no_reduction(id, among), "no reduction"),
        false => (schedule.why_incomplete(id, among), "not complete"),
    };
    match why {
        Some(why) => refuse(id, format!("the block is {what}: {why}")),
        None => Ok(()),
    }
}

fn all_inside(schedule: &Schedule, blocks: &[Id], at: Id, what: &str) -> Result<()> {
    match blocks.iter().find(|&&block| !schedule.tree.is_inside(block, at)) {
        Some(&block) => {
            let name = schedule.block_name(block);
            refuse(block, format!("{what}; \"{name}\" is not"))
        }
        None => Ok(()),
    }
}

/// A reduction has its result only when the loops that go through it are done.
fn check_finished(schedule: &Schedule, producer: Id, at: Id) -> Result<()> {
    let mut space = schedule.space();
    let Some(block) = schedule.tree.as_block(producer) else { return Ok(()) };
    let mut around = vec![at];
    around.extend(schedule.tree.ancestors(at));
    for iter in block.iters.iter().filter(|iter| schedule.is_reduce(iter.kind)) {
        let binding = space.read(schedule.body(), iter.binding);
        let open = around.iter().copied().find(|&id| {
            schedule.tree.as_for(id).is_some_and(|each| space.mentions(&binding, each.var))
        });
        if let Some(open) = open {
            let name = schedule.block_name(producer);
            return refuse(
                open,
                format!(
                    "block \"{name}\" is not done in a step of this loop, which goes through its reduction"
                ),
            );
        }
    }
    Ok(())
}

/// In a block what it reads is what the producers write: what was written before the block would be missed.
fn check_written(schedule: &Schedule, id: Id, producers: &[Id]) -> Result<()> {
    let Some(scope) = schedule.tree.scope(id) else { return Ok(()) };
    let mut space = schedule.space();
    let outside = schedule.outside(&space, scope);
    let read = schedule.buffers(id, false);
    for buffer in read {
        let (mut accesses, mut blocks) = (Vec::new(), Vec::new());
        for &block in producers.iter().chain([&id]) {
            let mut met = schedule.bound_accesses(&mut space, block);
            met.retain(|access| access.buffer == buffer && access.is_store == (block != id));
            blocks.extend(met.iter().map(|_| block));
            accesses.extend(met);
        }
        let is_written = accesses.iter().any(|access| access.is_store);
        let (space, outside) = (&mut space, &outside);
        if is_written && !writes_what_it_reads(schedule, space, buffer, &accesses, &blocks, outside)
        {
            let name = schedule.var_name(buffer);
            return refuse(
                id,
                format!("it reads of `{name}` what may be written before the block around it"),
            );
        }
    }
    Ok(())
}

/// Before which statement of the loop's body the block goes; none for its end.
fn place(
    schedule: &Schedule,
    at: Id,
    before: &[Id],
    behind: &[Id],
    wish: &str,
) -> Result<Option<Id>> {
    let body = schedule.tree.body_of(at);
    let stmts = match schedule.tree.get(body) {
        Node::Seq(stmts) => stmts.clone(),
        _ => vec![body],
    };
    let holds =
        |stmt: Id, blocks: &[Id]| blocks.iter().any(|&block| schedule.tree.is_inside(block, stmt));
    let first = stmts.iter().rposition(|&stmt| holds(stmt, before)).map_or(0, |last| last + 1);
    let last = stmts.iter().position(|&stmt| holds(stmt, behind)).unwrap_or(stmts.len());
    // Buffers are made before they are used.
    let allocs = stmts.iter().take_while(|&&id| matches!(schedule.tree.get(id), Node::Alloc(_)));
    let first = first.max(allocs.count());
    if first > last {
        return refuse(at, "in this loop what reads the block stands before what it reads");
    }
    let index = if wish == "first" { first } else { last };
    Ok(stmts.get(index).copied())
}

/// For each iterator of a block the values that it goes through in one step of a loop; `None` for its whole domain. Others read
/// what the block writes, or write what it reads.
fn ranges_for(
    schedule: &Schedule,
    space: &mut Space,
    id: Id,
    at: Id,
    others: &[Id],
    is_producer: bool,
) -> Result<Vec<Option<Range>>> {
    let mut fixed: Vec<AtomId> = Vec::new();
    for around in std::iter::once(at).chain(schedule.tree.ancestors(at)) {
        if let Some(each) = schedule.tree.as_for(around) {
            fixed.extend(space.find(each.var));
        }
        if let Some(block) = schedule.tree.as_block(around) {
            fixed.extend(block.iters.iter().filter_map(|iter| space.find(iter.var)));
        }
    }
    let is_fixed = |atom: AtomId| fixed.contains(&atom);
    let theirs: Vec<Access> =
        others.iter().flat_map(|&other| schedule.bound_accesses(space, other)).collect();
    let own = schedule.accesses(space, id);
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let iters: Vec<Option<AtomId>> = block.iters.iter().map(|iter| space.find(iter.var)).collect();
    let mut ranges: Vec<Option<Range>> = vec![None; iters.len()];
    let mut seen: Vec<(Expr, &Vec<Sum>)> = Vec::new();
    let mut met_regions = Vec::new();
    for access in own.iter().filter(|access| access.is_store == is_producer) {
        let met: Vec<&Access> = theirs
            .iter()
            .filter(|other| other.buffer == access.buffer && other.is_store != is_producer)
            .collect();
        if met.is_empty() {
            continue;
        }
        let Some(indices) = &access.indices else {
            return refuse(access.stmt, "it does not access single elements");
        };
        if seen.iter().any(|(buffer, first)| *buffer == access.buffer && *first != indices) {
            return refuse(access.stmt, "it accesses several elements of a buffer between the two");
        }
        seen.push((access.buffer, indices));
        let region = schedule.region(space, access.buffer, &met, &is_fixed);
        for (index, range) in indices.iter().zip(&region) {
            narrow(space, index, range.clone(), &iters, &mut ranges);
        }
        met_regions.push((access.stmt, indices, region));
    }
    if !is_producer {
        // In a space of its own: elsewhere the iterators have their domains.
        let mut step = space.clone();
        for (iter, range) in block.iters.iter().zip(&ranges) {
            range.iter().for_each(|range| step.set_range(iter.var, range.clone()));
        }
        for (stmt, indices, region) in met_regions {
            if !is_within(&step, indices, &region, &is_fixed) {
                return refuse(stmt, "in a step of the loop it reads more than is written by then");
            }
        }
    }
    Ok(ranges)
}

/// Whether the elements at these indices are in a region, while `is_fixed` stays what it is.
fn is_within(
    space: &Space,
    indices: &[Sum],
    region: &[Range],
    is_fixed: &dyn Fn(AtomId) -> bool,
) -> bool {
    indices.iter().zip(region).all(|(index, range)| {
        space.extremes(index, is_fixed).is_some_and(|[low, high]| {
            let end = range.min.add(&range.extent);
            space.is_natural(&low.sub(&range.min)) && space.is_less(&high, &end)
        })
    })
}

/// What `index`, an iterator and a constant, says of that iterator when it goes through `range`.
fn narrow(
    space: &mut Space,
    index: &Sum,
    range: Range,
    iters: &[Option<AtomId>],
    ranges: &mut [Option<Range>],
) {
    let offset = index.constant();
    let Some(atom) = index.add_int(-offset).as_atom() else { return };
    let Some(slot) = iters.iter().position(|&iter| iter == Some(atom)) else { return };
    let own = Range { min: range.min.add_int(-offset), extent: range.extent };
    // Two buffers may say different things: the larger holds for both.
    ranges[slot] = match ranges[slot].take() {
        None => Some(own),
        Some(other) if other == own => Some(own),
        Some(other) => {
            let min = space.min(&other.min, &own.min);
            let ends = [other.min.add(&other.extent), own.min.add(&own.extent)];
            let end = space.max(&ends[0], &ends[1]);
            Some(Range { extent: end.sub(&min), min })
        }
    };
}

/// Moves a block into a loop, before a statement of its body or to its end, over these values of its iterators.
fn relocate(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    at: Id,
    place: Option<Id>,
    ranges: Vec<Option<Range>>,
) {
    // The block leaves its place, and the loops that are empty then go.
    let hole = schedule.tree.add(Node::Gone);
    schedule.tree.replace(id, hole);
    schedule.tree.remove(hole);
    schedule.tree.block_mut(id).predicate = None;
    let nest = nest_over(schedule, space, id, ranges);
    match place.filter(|&place| !matches!(schedule.tree.get(place), Node::Gone)) {
        Some(place) => schedule.tree.insert(place, false, vec![nest]),
        None => {
            let body = schedule.tree.body_of(at);
            let last = match schedule.tree.get(body) {
                Node::Seq(stmts) => stmts.last().copied().unwrap_or(body),
                _ => body,
            };
            schedule.tree.insert(last, true, vec![nest]);
        }
    }
}

/// Loops over values of the iterators of a block, with a predicate where these may leave their domains.
fn nest_over(schedule: &mut Schedule, space: &mut Space, id: Id, ranges: Vec<Option<Range>>) -> Id {
    let iters: Vec<Iter> = schedule.tree.block_mut(id).iters.clone();
    let mut loops: Vec<(Expr, Expr)> = Vec::new();
    let mut conditions = Vec::new();
    for (number, (iter, range)) in iters.iter().zip(ranges).enumerate() {
        let body = schedule.body();
        let domain =
            Range { min: space.read(body, iter.min), extent: space.read(body, iter.extent) };
        let range = match range {
            // What is at least the domain is the domain.
            Some(range) if !space.is_natural(&range.extent.sub(&domain.extent)) => range,
            Some(range) if range.extent == domain.extent => range,
            _ => domain.clone(),
        };
        let mut value = range.min.clone();
        if range.extent.value() != Some(1) {
            let var = schedule.index_var(&format!("ax{number}"));
            space.set_range(var, Range { min: Sum::default(), extent: range.extent.clone() });
            value = value.add(&space.node(var));
            loops.push((var, space.build(&mut schedule.rw, &range.extent)));
        }
        let end = domain.min.add(&domain.extent);
        if !space.is_less(&value, &end) {
            conditions.push(schedule.less(space, &value, &end));
        }
        if !space.is_natural(&value.sub(&domain.min)) {
            conditions.push(schedule.at_least(space, &value, &domain.min));
        }
        let binding = space.build(&mut schedule.rw, &value);
        schedule.tree.block_mut(id).iters[number].binding = binding;
    }
    schedule.add_predicate(space, id, &conditions);
    schedule.loops_over(id, loops)
}
