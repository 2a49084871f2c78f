//! Loops one after the other over parts of a loop's range.
//!
//! ```ir
//! for %i in 0..128 { … }      =>      for %i_0 in 0..2 { … }  for %i_1 in 0..126 { … i = %i_1 + 2 … }
//! ```
//!
//! Each part has its own copy of the blocks, whose domains stay whole, so that a reduction starts once.

use crate::index::{Range, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{For, Node};

use super::fuse::plain;
use super::split::rename_blocks;

pub(super) static PARTITION: Primitive = Primitive {
    name: "partition",
    version: 1,
    summary: "Makes loops one after the other, over these numbers of steps; what is left is a last one.",
    params: &[Param::new("loop", Kind::Loop), Param::new("lengths", Kind::Factors)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let each = plain(schedule, id)?.clone();
    let mut space = schedule.space();
    let extent = space.read(schedule.body(), each.extent);
    let given = args.factors(1);
    if given.iter().filter(|length| length.is_none()).count() > 1 {
        return refuse(id, "more than one length is open");
    }
    if let Some(wrong) = given.iter().flatten().find(|&&length| length <= 0) {
        return refuse(id, format!("the length {wrong} is not positive"));
    }
    let known = given.iter().flatten().fold(0i64, |sum, &length| sum.saturating_add(length));
    let rest = extent.add_int(-known);
    if !space.is_natural(&rest.add_int(-1)) {
        return refuse(id, "the lengths are not known to be less than the extent of the loop");
    }
    let mut lengths: Vec<Sum> =
        given.iter().map(|length| length.map_or(rest.clone(), Sum::int)).collect();
    if given.iter().all(Option::is_some) {
        lengths.push(rest);
    }
    // The copies are made while the body is as it was.
    let mut bodies = vec![each.body];
    for _ in 1..lengths.len() {
        bodies.push(schedule.copy(each.body));
    }
    let name = schedule.var_name(each.var);
    let mut start = Sum::default();
    let mut loops = Vec::new();
    for (at, (length, body)) in lengths.iter().zip(bodies).enumerate() {
        rename_blocks(schedule, body, &format!("{name}{at}"));
        let var = schedule.index_var(&format!("{name}_{at}"));
        space.set_range(var, Range { min: Sum::default(), extent: length.clone() });
        let value = space.node(var).add(&start);
        let (min, extent) = (schedule.int(0), space.build(&mut schedule.rw, length));
        let part = For { var, min, extent, body, ..each.clone() };
        loops.push(schedule.tree.make(Node::For(part)));
        let built = space.build(&mut schedule.rw, &value);
        schedule.substitute(body, [(each.var, built)]);
        start = start.add(length);
    }
    schedule.tree.replace(id, loops[0]);
    *schedule.tree.get_mut(id) = Node::Gone;
    schedule.tree.insert(loops[0], true, loops[1..].to_vec());
    Ok(loops.into_iter().map(|id| Loop(id).into()).collect())
}
