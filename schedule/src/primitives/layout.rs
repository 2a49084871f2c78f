//! A buffer of the program's own in another layout.
//!
//! ```ir
//! alloc %B: f32[128, 64]                                   alloc %B: f32[8, 64, 16]
//! %B[%vi, %vj] = …                                  =>     %B[%vi floordiv 16, %vj, %vi % 16] = …
//!                  (i, j) -> (i / 16, j, i % 16)
//! ```
//!
//! The map takes each element to a place of its own. Every access follows; the loops stay.

use tenon_plugin_api::ir::{Build, Expr};

use crate::exprs::Replacing;
use crate::index::{AtomId, Range, Space, Sum, is_injective};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{Id, Node};

use super::cache::named;

pub(super) static TRANSFORM_LAYOUT: Primitive = Primitive {
    name: "transform_layout",
    version: 1,
    summary: "Puts the elements of a buffer that a block writes in another order, told by a map of indices.",
    params: &[
        Param::new("block", Kind::Block),
        Param::new("buffer", Kind::Text),
        Param::new("map", Kind::Text),
    ],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let buffer = named(schedule, id, args.text(1), true)?;
    if !schedule.all_allocated().contains(&buffer) {
        return refuse(
            id,
            "the buffer is a parameter; those who call the program would have to follow",
        );
    }
    let mut space = schedule.space();
    let whole = schedule.whole(&mut space, buffer);
    let (vars, outputs) = read_map(schedule, &mut space, id, args.text(2), &whole)?;
    let atoms: Vec<AtomId> = vars.iter().filter_map(|&var| space.find(var)).collect();
    if !is_injective(&mut space, &outputs, &atoms) {
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
        shape.push(high.add_int(1));
    }
    let count = |extents: Vec<&Sum>| {
        extents.into_iter().try_fold(Sum::int(1), |product, extent| product.mul(extent))
    };
    if count(shape.iter().collect()) != count(whole.iter().map(|range| &range.extent).collect()) {
        return refuse(id, "the new layout would have more elements than the buffer");
    }
    check_accesses(schedule, buffer)?;
    rewrite(schedule, &mut space, buffer, &vars, &outputs, &shape);
    Ok(Vec::new())
}

/// A map such as `(i, j) -> (i / 16, j, i % 16)`: its variables, over the extents of a buffer, and the new indices.
fn read_map(
    schedule: &mut Schedule,
    space: &mut Space,
    id: Id,
    text: &str,
    whole: &[Range],
) -> Result<(Vec<Expr>, Vec<Sum>)> {
    let map = match crate::trace::IndexMap::parse(text) {
        Ok(map) => map,
        Err(message) => return refuse(id, format!("in the map `{text}`: {message}")),
    };
    if map.inputs.len() != whole.len() {
        let (found, rank) = (map.inputs.len(), whole.len());
        return refuse(
            id,
            format!("the map takes {found} indices, and the buffer has {rank} axes"),
        );
    }
    let mut vars = Vec::new();
    for (name, range) in map.inputs.iter().zip(whole) {
        let var = schedule.index_var(name);
        space.set_range(var, range.clone());
        vars.push(var);
    }
    let outputs = map.outputs.iter().map(|output| output.sum(space, &vars));
    match outputs.collect::<Option<Vec<Sum>>>() {
        Some(outputs) if !outputs.is_empty() => Ok((vars, outputs)),
        _ => refuse(
            id,
            format!("the map `{text}` is not made of sums, and of quotients by positive numbers"),
        ),
    }
}

fn check_accesses(schedule: &Schedule, buffer: Expr) -> Result<()> {
    let mut space = schedule.space();
    let root = schedule.tree.root;
    for access in schedule.bound_accesses(&mut space, root) {
        if access.buffer == buffer && access.indices.is_none() {
            return refuse(access.stmt, "it does not access single elements of the buffer");
        }
    }
    Ok(())
}

fn rewrite(
    schedule: &mut Schedule,
    space: &mut Space,
    buffer: Expr,
    vars: &[Expr],
    outputs: &[Sum],
    shape: &[Sum],
) {
    let cx = schedule.rw.cx();
    let dims: Vec<_> = shape.iter().map(|extent| space.dim(&cx, extent)).collect();
    let new = schedule.buffer_like(buffer, &dims);
    let exprs: Vec<Expr> =
        outputs.iter().map(|output| space.build(&mut schedule.rw, output)).collect();
    schedule.reindex(buffer, new, |rw, axis, indices| {
        let pairs = vars.iter().copied().zip(indices.iter().copied());
        Replacing::of(pairs).of_expr(rw, exprs[axis])
    });
    for id in schedule.tree.all() {
        if let Node::Alloc(made) = schedule.tree.get_mut(id)
            && *made == buffer
        {
            *made = new;
        }
    }
}
