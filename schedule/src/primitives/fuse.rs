//! One loop of several that stand in one another.
//!
//! ```ir
//! for %i in 0..128 { for %j in 0..64 {            for %i_j in 0..8192 {
//!     block "B" (%vi: spatial = %i,         =>      block "B" (%vi: spatial = %i_j floordiv 64,
//!                %vj: spatial = %j) …                          %vj: spatial = %i_j % 64) …
//! ```
//!
//! The order of the steps stays. Fusing what was split gives the loop back.

use tenon_plugin_api::ir::{Attrs, LoopKind};

use crate::index::Sum;
use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{For, Id, Node};

pub(super) static FUSE: Primitive = Primitive {
    name: "fuse",
    version: 1,
    summary: "Makes one loop of loops each of which holds the next and nothing else.",
    params: &[Param::new("loops", Kind::Loops)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let loops = args.ids(0);
    let Some((&outer, &inner)) = loops.first().zip(loops.last()) else {
        return Err(Refusal::new("no loop is named"));
    };
    let kind = check(schedule, &loops)?;
    let mut space = schedule.space();
    let nodes: Vec<For> =
        loops.iter().filter_map(|&id| schedule.tree.as_for(id)).cloned().collect();
    let extents: Vec<Sum> =
        nodes.iter().map(|each| space.read(schedule.body(), each.extent)).collect();
    let total = extents.iter().try_fold(Sum::int(1), |total, extent| total.mul(extent));
    let Some(total) = total else { return refuse(outer, "the product of the extents is too long") };
    let names: Vec<String> = nodes.iter().map(|each| schedule.var_name(each.var)).collect();
    let var = schedule.index_var(&names.join("_"));
    let range = crate::index::Range { min: Sum::default(), extent: total.clone() };
    space.set_range(var, range);
    let mut rest = space.node(var);
    let mut pairs = Vec::new();
    for (each, extent) in nodes.iter().zip(&extents).rev() {
        let (whole, own) = space.divide(&rest, extent);
        let own = if each.var == nodes[0].var { rest.clone() } else { own };
        pairs.push((each.var, space.build(&mut schedule.rw, &own)));
        rest = whole;
    }
    let (min, extent) = (schedule.int(0), space.build(&mut schedule.rw, &total));
    let body = nodes.last().expect("there is a loop").body;
    let fused = For { var, min, extent, kind, body, ..nodes[0].clone() };
    let fused = schedule.tree.add(Node::For(fused));
    schedule.tree.replace(outer, fused);
    *schedule.tree.get_mut(inner) = Node::Gone;
    for &id in &loops {
        *schedule.tree.get_mut(id) = Node::Gone;
    }
    schedule.tree.adopt(fused);
    schedule.substitute(body, pairs);
    Ok(vec![Loop(fused).into()])
}

/// The kind of the fused loop: that of all, when they agree, else serial.
fn check(schedule: &Schedule, loops: &[Id]) -> Result<LoopKind> {
    let mut space = schedule.space();
    let mut kinds = Vec::new();
    for (at, &id) in loops.iter().enumerate() {
        let each = plain(schedule, id)?;
        kinds.push(each.kind);
        if at > 0 {
            let outer = loops[at - 1];
            if schedule.tree.parent(id) != Some(outer) {
                let what = match schedule.tree.is_inside(id, outer) {
                    true => "it is not the only statement inside the loop before it",
                    false => "it is not inside the loop before it",
                };
                return refuse(id, what);
            }
        }
        let extent = space.read(schedule.body(), each.extent);
        for &outer in &loops[..at] {
            let var = schedule.tree.as_for(outer).map(|outer| outer.var);
            if var.is_some_and(|var| space.mentions(&extent, var)) {
                return refuse(id, "its extent depends on a loop that is fused with it");
            }
        }
    }
    Ok(match kinds.as_slice() {
        [first, others @ ..] if others.iter().all(|kind| kind == first) => *first,
        _ => LoopKind::Serial,
    })
}

/// A loop from zero on, without annotations, that no thread runs.
pub(super) fn plain(schedule: &Schedule, id: Id) -> Result<&For> {
    let Some(each) = schedule.tree.as_for(id) else { return refuse(id, "it is no loop") };
    if each.attrs != Attrs::NONE {
        return refuse(id, "the loop has an annotation");
    }
    if each.kind == LoopKind::ThreadBound {
        return refuse(id, "the loop is bound to threads");
    }
    let mut space = schedule.space();
    if space.read(schedule.body(), each.min).value() != Some(0) {
        return refuse(id, "the loop does not start at zero");
    }
    Ok(each)
}
