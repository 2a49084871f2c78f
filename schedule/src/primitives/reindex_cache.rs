//! A copy of what a block accesses, indexed by its iterators.
//!
//! ```ir
//! block "C" … { %C[%vi, %vj] = %B[%vi + %vj] }      =>      block "B_shared" … { %B_shared[%vj, %vi] = %B[%vi + %vj] }
//!                      (i, j) -> (j, i)                     block "C" … { %C[%vi, %vj] = %B_shared[%vj, %vi] }
//! ```
//!
//! `reindex_cache_read` and `reindex_cache_write` are told the indices by a map of all iterators of the block, in their order; `reindex`
//! takes those of them that say which element it is. So whatever a block reads, windows of an image among it, lies as its loops go.

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{Attrs, Build, BuildPrim, Expr};

use crate::exprs::Replacing;
use crate::index::{AtomId, Fit, Space, Sum, is_injective};
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, IndexMap, Kind, Param, Primitive};
use crate::tree::{BlockNode, Id, Iter, Node};

use super::cache::{SCOPES, named, reading_place, top_of};

const PARAMS: &[Param] = &[
    Param::new("block", Kind::Block),
    Param::new("buffer", Kind::Text),
    Param::new("scope", Kind::Word(SCOPES)),
    Param::new("map", Kind::Text),
];

pub(super) static REINDEX_CACHE_READ: Primitive = Primitive {
    name: "reindex_cache_read",
    version: 1,
    summary: "Copies what a block reads of a buffer to where a map of its iterators says, and reads the copy.",
    params: PARAMS,
    apply: |schedule, args| reindex_cache(schedule, args, false),
};

pub(super) static REINDEX_CACHE_WRITE: Primitive = Primitive {
    name: "reindex_cache_write",
    version: 1,
    summary: "Writes to where a map of a block's iterators says, and copies that to where the block wrote.",
    params: PARAMS,
    apply: |schedule, args| reindex_cache(schedule, args, true),
};

pub(super) static REINDEX: Primitive = Primitive {
    name: "reindex",
    version: 1,
    summary: "Copies what a block reads, or writes, of a buffer, so that its iterators are the indices.",
    params: &[Param::new("block", Kind::Block), Param::new("buffer", Kind::Text)],
    apply: reindex,
};

fn reindex_cache(schedule: &mut Schedule, args: &Args, is_store: bool) -> Result<Vec<Handle>> {
    let (id, scope, map) = (args.id(0), args.text(2), args.text(3));
    let buffer = named(schedule, id, args.text(1), is_store)?;
    let mut space = schedule.space();
    let from = place(schedule, &mut space, id, buffer, is_store)?;
    let to = mapped(schedule, &mut space, id, map, &from)?;
    let name = format!("{}_{scope}", schedule.var_name(buffer));
    copy(schedule, &mut space, &Copied { id, buffer, is_store, from, to }, &name, scope)
}

fn reindex(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, name) = (args.id(0), args.text(1));
    let is_written = |&buffer: &Expr| schedule.var_name(buffer) == name;
    let is_store = schedule.buffers(id, true).iter().any(is_written);
    let buffer = named(schedule, id, name, is_store)?;
    let mut space = schedule.space();
    let from = place(schedule, &mut space, id, buffer, is_store)?;
    let to = iterators_of(schedule, &space, id, &from).into_iter().map(Sum::atom).collect();
    let name = format!("{name}_reindex");
    copy(schedule, &mut space, &Copied { id, buffer, is_store, from, to }, &name, "global")
}

/// The element of a buffer that an instance of a block accesses, and that of the copy, in terms of the iterators.
struct Copied {
    id: Id,
    buffer: Expr,
    is_store: bool,
    from: Vec<Sum>,
    to: Vec<Sum>,
}

/// The indices of the one element of a buffer that an instance of the block accesses, in terms of its iterators.
fn place(
    schedule: &Schedule,
    space: &mut Space,
    id: Id,
    buffer: Expr,
    is_store: bool,
) -> Result<Vec<Sum>> {
    if let Some(outer) = schedule.tree.scope(id) {
        return refuse(outer, "each step of this block, which is around it, would copy all");
    }
    let mut met = schedule.accesses(space, id);
    met.retain(|access| access.buffer == buffer);
    let Some(Some(indices)) = met.first().map(|access| access.indices.clone()) else {
        return refuse(id, "it does not access single elements of the buffer");
    };
    if let Some(other) = met.iter().find(|other| other.indices.as_ref() != Some(&indices)) {
        return refuse(other.stmt, "it accesses several elements of the buffer");
    }
    if let Some(other) = met.iter().find(|other| other.is_store != is_store)
        && !(is_store && schedule.tree.as_block(id).is_some_and(|block| block.init.is_some()))
    {
        return refuse(other.stmt, "it reads and writes the buffer");
    }
    let own: Vec<AtomId> = iterators_of(schedule, space, id, &indices);
    let is_own = |index: &Sum| space.nodes_of(index).iter().all(|atom| own.contains(atom));
    if !indices.iter().all(is_own) {
        return refuse(id, "it accesses more than one element of the buffer");
    }
    for (index, axis) in indices.iter().zip(schedule.whole(space, buffer)) {
        let ends = space.extremes(index, &|_| false);
        let is_inside = ends.is_some_and(|[low, high]| {
            space.is_natural(&low) && space.is_less(&high, &axis.extent)
        });
        if !is_inside {
            return refuse(id, "where it accesses the buffer is not known to be inside of it");
        }
    }
    if is_store {
        check_writer(schedule, id, buffer)?;
    }
    Ok(indices)
}

/// The block alone writes the buffer, each element that its iterators say.
fn check_writer(schedule: &Schedule, id: Id, buffer: Expr) -> Result<()> {
    let all = schedule.tree.blocks_of(None);
    let why = match schedule.tree.as_block(id).is_some_and(|block| block.init.is_some()) {
        true => {
            schedule.why_no_reduction(id, &all).or_else(|| schedule.why_not_affine(id, Fit::Exact))
        }
        false => {
            schedule.why_incomplete(id, &all).or_else(|| schedule.why_not_affine(id, Fit::Overlap))
        }
    };
    if let Some(why) = why {
        return refuse(id, format!("it does not write each element that is copied: {why}"));
    }
    let is_choice = |&stmt: &Id| matches!(schedule.tree.get(stmt), Node::If { .. });
    if let Some(choice) = schedule.tree.walk(id).into_iter().find(is_choice) {
        return refuse(choice, "where this does not hold nothing is written that could be copied");
    }
    let top = top_of(schedule, None, id);
    let uses = |other: &&Id| {
        let is_near = **other != id && schedule.tree.is_inside(**other, top);
        let met = |is_store| schedule.buffers(**other, is_store).contains(&buffer);
        met(true) && **other != id || is_near && met(false)
    };
    match all.iter().find(uses) {
        Some(&other) => refuse(other, "it uses the buffer as well"),
        None => Ok(()),
    }
}

/// The iterators of a block that indices name, in its order.
fn iterators_of(schedule: &Schedule, space: &Space, id: Id, indices: &[Sum]) -> Vec<AtomId> {
    let iters = schedule.tree.as_block(id).map_or(&[][..], |block| &block.iters);
    let named = |atom: &AtomId| indices.iter().any(|index| space.nodes_of(index).contains(atom));
    iters.iter().filter_map(|iter| space.find(iter.var)).filter(named).collect()
}

/// What a map makes of the iterators: of those that say which element it is, and each of them in a place of its own.
fn mapped(
    schedule: &Schedule,
    space: &mut Space,
    id: Id,
    text: &str,
    indices: &[Sum],
) -> Result<Vec<Sum>> {
    let map = match IndexMap::parse(text) {
        Ok(map) => map,
        Err(message) => return refuse(id, format!("in the map `{text}`: {message}")),
    };
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let vars: Vec<Expr> = block.iters.iter().map(|iter| iter.var).collect();
    if map.inputs.len() != vars.len() {
        let (given, count) = (map.inputs.len(), vars.len());
        return refuse(id, format!("the map takes {given} iterators, and the block has {count}"));
    }
    let outputs = map.outputs.iter().map(|output| output.sum(space, &vars));
    let Some(outputs) = outputs.collect::<Option<Vec<Sum>>>() else {
        return refuse(id, "the map is not made of sums, and of quotients by positive numbers");
    };
    let wanted = iterators_of(schedule, space, id, indices);
    let given = iterators_of(schedule, space, id, &outputs);
    for (&var, input) in vars.iter().zip(&map.inputs) {
        let is_in = |atoms: &[AtomId]| space.find(var).is_some_and(|atom| atoms.contains(&atom));
        match (is_in(&wanted), is_in(&given)) {
            (true, false) => {
                return refuse(
                    id,
                    format!("`{input}` says which element it is, and is missing in the map"),
                );
            }
            (false, true) => {
                return refuse(
                    id,
                    format!("the map names `{input}`, which does not say which element it is"),
                );
            }
            _ => {}
        }
    }
    if !is_injective(space, &outputs, &wanted) {
        return refuse(id, "the map does not take each element to a place of its own");
    }
    Ok(outputs)
}

/// Makes the copy, and has the block use it.
fn copy(
    schedule: &mut Schedule,
    space: &mut Space,
    copied: &Copied,
    name: &str,
    scope: &str,
) -> Result<Vec<Handle>> {
    let Copied { id, buffer, is_store, .. } = *copied;
    let place = match is_store {
        true => (top_of(schedule, None, id), true),
        false => reading_place(schedule, None, buffer, &[id])?,
    };
    let mut shape = Vec::new();
    for output in &copied.to {
        match space.extremes(output, &|_| false) {
            Some([low, high]) if space.is_natural(&low) && space.is_symbolic(&high) => {
                let cx = schedule.rw.cx();
                shape.push(space.dim(&cx, &high.add_int(1)));
            }
            _ => return refuse(id, "the extent of an axis of the copy is not known"),
        }
    }
    let like = schedule.buffer_like(buffer, &shape);
    let ty = schedule.body().ty(like).expect("a buffer has a type");
    let cache = schedule.new_buffer(name, ty, if scope == "global" { "" } else { scope });
    let mut built = |sums: &[Sum]| -> Vec<Expr> {
        sums.iter().map(|sum| space.build(&mut schedule.rw, sum)).collect()
    };
    let (from, to) = (built(&copied.from), built(&copied.to));
    let [source, target] = match is_store {
        true => [(cache, &to), (buffer, &from)],
        false => [(buffer, &from), (cache, &to)],
    };
    let value = schedule.rw.load(source.0, source.1);
    let store = (target.0, value, target.1.as_slice());
    let (nest, block) = copy_nest(schedule, space, copied, name, store);
    schedule.tree.insert(place.0, place.1, vec![nest]);
    schedule.redirect(id, buffer, cache, |_, axis, _| to[axis]);
    schedule.allocate(None, cache);
    Ok(vec![Block(block).into()])
}

/// Loops over the iterators that say which element it is, around a block that stores what is copied: a buffer, a value, and where it
/// goes, in terms of the iterators of the block that uses the copy.
fn copy_nest(
    schedule: &mut Schedule,
    space: &mut Space,
    copied: &Copied,
    name: &str,
    (buffer, value, at): (Expr, Expr, &[Expr]),
) -> (Id, Id) {
    let atoms = iterators_of(schedule, space, copied.id, &copied.from);
    let all = schedule.tree.as_block(copied.id).map_or(Vec::new(), |block| block.iters.clone());
    let (mut iters, mut loops, mut pairs) = (Vec::new(), Vec::new(), HashMap::default());
    for old in all {
        if !space.find(old.var).is_some_and(|atom| atoms.contains(&atom)) {
            continue;
        }
        let number = loops.len();
        let [var, each] =
            [format!("v{number}"), format!("ax{number}")].map(|name| schedule.index_var(&name));
        pairs.insert(old.var, var);
        let min = space.read(schedule.body(), old.min);
        let value = space.node(each).add(&min);
        let binding = space.build(&mut schedule.rw, &value);
        iters.push(Iter { var, kind: schedule.kind_term(false), binding, ..old });
        loops.push((each, old.extent));
    }
    let mut replacing = Replacing::of(pairs);
    let value = replacing.of_expr(&mut schedule.rw, value);
    let indices = at.iter().map(|&index| replacing.of_expr(&mut schedule.rw, index)).collect();
    let body = schedule.tree.add(Node::Store { buffer, value, indices });
    let name = schedule.symbol(name);
    let (predicate, init, attrs) = (None, None, Attrs::NONE);
    let block = BlockNode { name, iters, predicate, attrs, init, body };
    let block = schedule.tree.make(Node::Block(block));
    (schedule.loops_over(block, loops), block)
}
