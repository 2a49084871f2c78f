//! One iterator of two neighbours, and one axis of a buffer, of whatever extents.
//!
//! ```ir
//! for %i in 0..dim(h) { for %j in 0..dim(w) {              for %ax0 in 0..dim(h * w) {
//!     block "B" (%vi: spatial = %i,                  =>      block "B" (%v0: spatial = %ax0) {
//!                %vj: spatial = %j) {                          %B[%v0 floordiv dim(w), %v0 % dim(w)] = … } }
//!       %B[%vi, %vj] = … } } }
//!                                      of the iterators 0 and 1
//! ```
//!
//! The order of the steps, and that of the elements in memory, stays. [`super::block_layout`] and [`super::layout`] do more, by maps, which
//! know no extents but numbers.

use tenon_plugin_api::ir::Expr;

use crate::index::{Range, Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::Id;

use super::block_layout::{Made, own_nest, put};
use super::cache::named;
use super::layout::{check_accesses, rewrite};
use super::reorder::check_blocks;

pub(super) static JOIN_ITERATORS: Primitive = Primitive {
    name: "join_iterators",
    version: 1,
    summary: "Makes one iterator of a block of two neighbours, by the number of the first, and one loop of theirs; the loops.",
    params: &[Param::new("block", Kind::Block), Param::new("first", Kind::Int)],
    apply: of_block,
};

pub(super) static JOIN_AXES: Primitive = Primitive {
    name: "join_axes",
    version: 1,
    summary: "Makes one axis of a buffer that a block writes of two neighbours, by the number of the first.",
    params: &[
        Param::new("block", Kind::Block),
        Param::new("buffer", Kind::Text),
        Param::new("first", Kind::Int),
    ],
    apply: of_buffer,
};

fn of_block(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let loops = own_nest(schedule, id)?;
    check_blocks(schedule, loops.first().copied().unwrap_or(id))?;
    let Some(block) = schedule.tree.as_block(id).cloned() else { return Ok(Vec::new()) };
    let mut space = schedule.space();
    let extents: Vec<Sum> =
        block.iters.iter().map(|iter| space.read(schedule.body(), iter.extent)).collect();
    let (first, joined) = pair(id, args.int(1), &extents)?;
    let is_reduce = |at: usize| schedule.is_reduce(block.iters[at].kind);
    if is_reduce(first) != is_reduce(first + 1) {
        return refuse(id, "one of the iterators is spatial, and the other is of a reduction");
    }
    let kinds: Vec<bool> = (0..extents.len()).map(is_reduce).collect();
    let (mut made, mut pairs) = (Vec::new(), Vec::new());
    for (at, iter) in block.iters.iter().enumerate().filter(|&(at, _)| at != first + 1) {
        let extent = if at == first { &joined } else { &extents[at] };
        let new = Made::new(schedule, &mut space, made.len(), extent.clone(), kinds[at]);
        let value = match extent.value() {
            Some(1) => Sum::default(),
            _ => space.node(new.var),
        };
        if at == first {
            let (outer, inner) = space.divide(&value, &extents[at + 1]);
            let next = block.iters[at + 1].var;
            pairs.extend([(iter.var, outer), (next, inner)]);
        } else {
            pairs.push((iter.var, value));
        }
        made.push(new);
    }
    let pairs: Vec<(Expr, Expr)> = pairs
        .into_iter()
        .map(|(var, value)| (var, space.build(&mut schedule.rw, &value)))
        .collect();
    let nest = put(schedule, id, &loops, &made);
    schedule.substitute(id, pairs);
    Ok(nest.into_iter().map(|each| Loop(each).into()).collect())
}

fn of_buffer(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let buffer = named(schedule, id, args.text(1), true)?;
    if !schedule.all_allocated().contains(&buffer) {
        return refuse(
            id,
            "the buffer is a parameter, and who calls the program would have to follow",
        );
    }
    check_accesses(schedule, buffer)?;
    let mut space = schedule.space();
    let whole = schedule.whole(&mut space, buffer);
    let mut shape: Vec<Sum> = whole.iter().map(|range| range.extent.clone()).collect();
    let (first, joined) = pair(id, args.int(2), &shape)?;
    let vars = variables(schedule, &mut space, &whole);
    let mut outputs: Vec<Sum> = vars.iter().map(|&var| space.node(var)).collect();
    let Some(rows) = outputs[first].mul(&shape[first + 1]) else {
        return refuse(id, "the extents of the axes are too long to be multiplied");
    };
    outputs[first] = rows.add(&outputs[first + 1]);
    outputs.remove(first + 1);
    shape[first] = joined;
    shape.remove(first + 1);
    rewrite(schedule, &mut space, buffer, &vars, &outputs, &shape);
    Ok(Vec::new())
}

/// A variable for each axis.
fn variables(schedule: &mut Schedule, space: &mut Space, whole: &[Range]) -> Vec<Expr> {
    let of = |(at, range): (usize, &Range)| {
        let var = schedule.index_var(&format!("i{at}"));
        space.set_range(var, range.clone());
        var
    };
    whole.iter().enumerate().map(of).collect()
}

/// The number of the first of two neighbours, and the product of their extents.
fn pair(id: Id, first: i64, extents: &[Sum]) -> Result<(usize, Sum)> {
    let found = usize::try_from(first).ok();
    let Some((first, [outer, inner])) =
        found.and_then(|first| Some((first, extents.get(first..)?.first_chunk::<2>()?)))
    else {
        let count = extents.len();
        return refuse(id, format!("there are {count}, of which number {first} has no neighbour"));
    };
    match outer.mul(inner) {
        Some(joined) => Ok((first, joined)),
        None => refuse(id, "the product of the extents is too long"),
    }
}
