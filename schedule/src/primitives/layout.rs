//! A buffer of the program's own in another layout.
//!
//! ```ir
//! alloc %B: f32[128, 64]                                   alloc %B: f32[8, 64, 16]
//! %B[%vi, %vj] = …                                  =>     %B[%vi floordiv 16, %vj, %vi % 16] = …
//!                  (i, j) -> (i / 16, j, i % 16)
//! ```
//!
//! The map takes each element to a place of its own. Every access follows; the loops stay. A map may leave holes, as that of 14
//! elements to 4 by 4 does, where that is said: nobody reads them, since every access goes through the map. With `pad` they hold a number.

use tenon_plugin_api::ir::{Build, Expr};

use crate::exprs::Replacing;
use crate::index::{AtomId, Range, Space, Sum, is_injective};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, IndexMap, Kind, Param, Primitive};
use crate::tree::Id;

use super::cache::named;
use super::layout_pad::Padding;

pub(super) static TRANSFORM_LAYOUT: Primitive = Primitive {
    name: "transform_layout",
    version: 1,
    summary: "Puts the elements of a buffer that a block writes in another order, told by a map of indices.",
    params: &[
        Param::new("block", Kind::Block),
        Param::new("buffer", Kind::Text),
        Param::new("map", Kind::Text),
        Param::new("holes", Kind::Word(&["refuse", "leave"])).or("refuse"),
        Param::new("pad", Kind::Text).or("\"\""),
    ],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let buffer = named(schedule, id, args.text(1), true)?;
    if !schedule.all_allocated().contains(&buffer) {
        return refuse(
            id,
            "the buffer is a parameter, and who calls the program would have to follow; `reindex_cache_read` copies it to another layout",
        );
    }
    let mut space = schedule.space();
    let whole = schedule.whole(&mut space, buffer);
    let map = parse(id, args.text(2), whole.len())?;
    let (vars, outputs) = read_map(schedule, &mut space, id, &map, &whole)?;
    let padding = match args.text(4) {
        "" => None,
        number => Some(Padding::of(schedule, id, buffer, number)?),
    };
    let leaves_holes = padding.is_some() || args.text(3) == "leave";
    if !takes_apart(schedule, &mut space, id, &map, &whole, leaves_holes)? {
        return refuse(
            id,
            "the map does not take each element to a place of its own, without holes",
        );
    }
    let mut shape = Vec::new();
    for output in &outputs {
        let Some(high) = space.highest(output) else {
            return refuse(id, "the extent of an axis of the new layout is not known");
        };
        if !space.lowest(output).is_some_and(|low| space.is_natural(&low)) {
            return refuse(id, "an index of the new layout may be negative");
        }
        shape.push(high.add_int(1));
    }
    let count = |extents: Vec<&Sum>| {
        extents.into_iter().try_fold(Sum::int(1), |product, extent| product.mul(extent))
    };
    let elements = count(whole.iter().map(|range| &range.extent).collect());
    if !leaves_holes && count(shape.iter().collect()) != elements {
        return refuse(id, "the new layout would have more elements than the buffer");
    }
    check_accesses(schedule, buffer)?;
    let new = rewrite(schedule, &mut space, buffer, &vars, &outputs, &shape);
    if let Some(padding) = padding {
        padding.fill(schedule, &mut space, new, (&vars, &outputs, &shape))?;
    }
    Ok(Vec::new())
}

/// A map such as `(i, j) -> (i / 16, j, i % 16)`.
fn parse(id: Id, text: &str, rank: usize) -> Result<IndexMap> {
    let map = match IndexMap::parse(text) {
        Ok(map) => map,
        Err(message) => return refuse(id, format!("in the map `{text}`: {message}")),
    };
    match map.inputs.len() {
        found if found == rank => Ok(map),
        found => {
            refuse(id, format!("the map takes {found} indices, and the buffer has {rank} axes"))
        }
    }
}

/// Whether a map takes elements to places of their own. With holes it does when it does so with more elements, as many as are
/// multiples of all that it divides by.
fn takes_apart(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    map: &IndexMap,
    whole: &[Range],
    with_holes: bool,
) -> Result<bool> {
    let mut ranges = whole.to_vec();
    if with_holes {
        let Some(step) = map.divisor() else {
            return refuse(id, "the map divides by numbers that are too large");
        };
        for range in &mut ranges {
            let rounded = space.ceil_div(&range.extent, &Sum::int(step)).times(step);
            range.extent = space.rejoin(rounded);
        }
    }
    let (vars, outputs) = read_map(schedule, space, id, map, &ranges)?;
    let atoms: Vec<AtomId> = vars.iter().filter_map(|&var| space.find(var)).collect();
    Ok(is_injective(space, &outputs, &atoms))
}

/// The variables of a map, over these ranges, and the new indices.
fn read_map(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    map: &IndexMap,
    whole: &[Range],
) -> Result<(Vec<Expr>, Vec<Sum>)> {
    let mut vars = Vec::new();
    for (name, range) in map.inputs.iter().zip(whole) {
        let var = schedule.index_var(name);
        space.set_range(var, range.clone());
        vars.push(var);
    }
    for (at, by) in map.quotients() {
        // The last quotient, in symbols: what bounds an index has to be there.
        space.div(&whole[at].extent.add_int(-1), &Sum::int(by));
    }
    let outputs = map.outputs.iter().map(|output| output.sum(space, &vars));
    match outputs.collect::<Option<Vec<Sum>>>() {
        Some(outputs) if !outputs.is_empty() => Ok((vars, outputs)),
        _ => refuse(id, "the map is not made of sums, and of quotients by positive numbers"),
    }
}

pub(super) fn check_accesses(schedule: &Schedule, buffer: Expr) -> Result<()> {
    let mut space = schedule.space();
    let root = schedule.tree.root;
    for access in schedule.bound_accesses(&mut space, root) {
        if access.buffer == buffer && access.indices.is_none() {
            return refuse(access.stmt, "it does not access single elements of the buffer");
        }
    }
    Ok(())
}

pub(super) fn rewrite(
    schedule: &mut Schedule,
    space: &mut Space,
    buffer: Expr,
    vars: &[Expr],
    outputs: &[Sum],
    shape: &[Sum],
) -> Expr {
    let cx = schedule.rw.cx();
    let dims: Vec<_> = shape.iter().map(|extent| space.dim(&cx, extent)).collect();
    let new = schedule.buffer_like(buffer, &dims);
    let exprs: Vec<Expr> =
        outputs.iter().map(|output| space.build(&mut schedule.rw, output)).collect();
    schedule.redirect(schedule.tree.root, buffer, new, |rw, axis, indices| {
        let pairs = vars.iter().copied().zip(indices.iter().copied());
        Replacing::of(pairs).of_expr(rw, exprs[axis])
    });
    schedule.make(new, buffer);
    new
}
