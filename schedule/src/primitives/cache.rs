//! A copy of what is read, or written, in a buffer nearer to those who use it.
//!
//! ```ir
//! block "C" … { %C[…] = %B[…] }      =>      block "B_local" … { %B_local[…] = %B[…] }
//!                                            block "C" … { %C[…] = %B_local[…] }
//! ```
//!
//! The copy has the shape of the buffer, and holds what is accessed; with `compute_at` it becomes a tile. Inside of a block it holds
//! what one step of that accesses.

use tenon_plugin_api::ir::{Attrs, BuildPrim, Expr};

use crate::access::Access;
use crate::compact::writes_all;
use crate::exprs::Replacing;
use crate::index::{Range, Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{BlockNode, Id, Iter, Node};

/// The memories that there are.
pub(super) const SCOPES: &[&str] = &["global", "shared", "local"];

pub(super) static CACHE_READ: Primitive = Primitive {
    name: "cache_read",
    version: 1,
    summary: "Copies what is read of a buffer, and reads the copy: in these blocks, or all when none is named.",
    params: &[
        Param::new("block", Kind::Block),
        Param::new("buffer", Kind::Text),
        Param::new("scope", Kind::Word(SCOPES)),
        Param::new("consumers", Kind::Blocks).or("[]"),
    ],
    apply: cache_read,
};

pub(super) static CACHE_WRITE: Primitive = Primitive {
    name: "cache_write",
    version: 1,
    summary: "Writes to a buffer of its own, and copies that to where the block wrote.",
    params: &[
        Param::new("block", Kind::Block),
        Param::new("buffer", Kind::Text),
        Param::new("scope", Kind::Word(SCOPES)),
    ],
    apply: cache_write,
};

fn cache_read(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let buffer = named(schedule, id, args.text(1), false)?;
    let scope = schedule.tree.scope(id);
    let mut readers = args.ids(3);
    if readers.is_empty() {
        readers = schedule.tree.blocks_of(scope);
    }
    readers.retain(|&other| schedule.buffers(other, false).contains(&buffer));
    if readers.is_empty() {
        return refuse(id, "no block reads the buffer");
    }
    let place = reading_place(schedule, scope, buffer, &readers)?;
    let mut space = schedule.space();
    let accesses: Vec<Access> =
        readers.iter().flat_map(|&reader| schedule.bound_accesses(&mut space, reader)).collect();
    let met: Vec<&Access> =
        accesses.iter().filter(|access| access.buffer == buffer && !access.is_store).collect();
    let region = region_of(schedule, &mut space, scope, buffer, &met);
    let (cache, nest, block) = copy_nest(schedule, &mut space, buffer, args.text(2), &region, true);
    schedule.tree.insert(place.0, place.1, vec![nest]);
    for reader in readers {
        use_instead(schedule, reader, buffer, cache);
    }
    schedule.allocate(scope, cache);
    Ok(vec![Block(block).into()])
}

/// Where what these blocks read of a buffer can be copied: a statement of the scope, and whether behind it.
pub(super) fn reading_place(
    schedule: &Schedule,
    scope: Option<Id>,
    buffer: Expr,
    readers: &[Id],
) -> Result<(Id, bool)> {
    let among = schedule.tree.blocks_of(scope);
    let writes = |other: &&Id| schedule.buffers(**other, true).contains(&buffer);
    let writers: Vec<Id> = among.iter().filter(writes).copied().collect();
    if let &[_, second, ..] = writers.as_slice() {
        return refuse(second, "several blocks write the buffer");
    }
    if let Some(&wrong) = readers.iter().find(|reader| writers.contains(reader)) {
        return refuse(wrong, "it reads and writes the buffer");
    }
    let first = among.iter().find(|block| readers.contains(block)).unwrap_or(&readers[0]);
    let Some(&writer) = writers.first() else {
        return Ok((top_of(schedule, scope, *first), false));
    };
    let top = top_of(schedule, scope, writer);
    match readers.iter().find(|&&id| schedule.tree.is_inside(id, top)) {
        Some(&reader) => {
            refuse(reader, "it stands in one nest with the block that writes the buffer")
        }
        None => Ok((top, true)),
    }
}

fn cache_write(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let buffer = named(schedule, id, args.text(1), true)?;
    let scope = schedule.tree.scope(id);
    let among = schedule.tree.blocks_of(scope);
    for &other in among.iter().filter(|&&other| other != id) {
        if schedule.buffers(other, true).contains(&buffer) {
            return refuse(other, "it writes the buffer as well");
        }
    }
    let mut space = schedule.space();
    if let Some(scope) = scope {
        check_box(schedule, &mut space, scope, id, buffer)?;
    }
    let accesses = schedule.bound_accesses(&mut space, id);
    let met: Vec<&Access> =
        accesses.iter().filter(|access| access.buffer == buffer && access.is_store).collect();
    let region = region_of(schedule, &mut space, scope, buffer, &met);
    let top = top_of(schedule, scope, id);
    for &other in among.iter().filter(|&&other| other != id) {
        let reads = schedule.buffers(other, false).contains(&buffer);
        if reads && schedule.tree.is_inside(other, top) {
            return refuse(other, "it reads the buffer in the nest of the block that writes it");
        }
    }
    let (cache, nest, block) =
        copy_nest(schedule, &mut space, buffer, args.text(2), &region, false);
    schedule.tree.insert(top, true, vec![nest]);
    use_instead(schedule, id, buffer, cache);
    schedule.allocate(scope, cache);
    Ok(vec![Block(block).into()])
}

/// What is copied: values of each axis, and the domain of the iterator that goes through them. In a block the values depend on its
/// iterators, and may leave the domain.
struct Copied {
    values: Range,
    domain: Range,
}

fn region_of(
    schedule: &Schedule,
    space: &mut Space,
    scope: Option<Id>,
    buffer: Expr,
    accesses: &[&Access],
) -> Vec<Copied> {
    let Some(scope) = scope else {
        let region = schedule.region_inside(space, buffer, accesses);
        let same = |range: Range| Copied { values: range.clone(), domain: range };
        return region.into_iter().map(same).collect();
    };
    let fixed = schedule.outside(space, scope);
    let region = schedule.region(space, buffer, accesses, &|atom| fixed.contains(&atom));
    let whole = schedule.whole(space, buffer);
    region.into_iter().zip(whole).map(|(values, domain)| Copied { values, domain }).collect()
}

/// Refuses a block of which it is not known that a step of the block around it writes all of a box: the copy would write back what
/// another step has written.
fn check_box(
    schedule: &Schedule,
    space: &mut Space,
    scope: Id,
    id: Id,
    buffer: Expr,
) -> Result<()> {
    let outside = schedule.outside(space, scope);
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let accesses = schedule.accesses(space, id);
    let (stores, loads): (Vec<&Access>, Vec<&Access>) =
        accesses.iter().filter(|access| access.buffer == buffer).partition(|it| it.is_store);
    if block.init.is_none() && !loads.is_empty() {
        return refuse(id, "it reads what was in the buffer before it writes there");
    }
    // What a predicate leaves out is beyond the end of the buffer, where nothing is copied.
    let whole = schedule.whole(space, buffer);
    let mut goes_to_the_end = |access: &&Access| {
        let indices = access.indices.as_deref().unwrap_or_default();
        indices.iter().zip(&whole).all(|(index, axis)| {
            let range = index.as_atom().and_then(|atom| space.range(atom));
            let is_fixed = space.nodes_of(index).iter().all(|atom| outside.contains(atom));
            range == Some(axis) || is_fixed
        })
    };
    let is_box = block.predicate.is_none() || stores.iter().all(&mut goes_to_the_end);
    if !is_box || !writes_all(schedule, space, id, &outside) {
        return refuse(
            id,
            "a step of the block around it is not known to write all of a box of the buffer",
        );
    }
    Ok(())
}

/// The buffer of a name that a block reads or writes.
pub(super) fn named(schedule: &Schedule, id: Id, name: &str, is_store: bool) -> Result<Expr> {
    let buffers = schedule.buffers(id, is_store);
    match buffers.iter().find(|&&buffer| schedule.var_name(buffer) == name) {
        Some(&buffer) => Ok(buffer),
        None => {
            let names: Vec<String> =
                buffers.iter().map(|&buffer| schedule.var_name(buffer)).collect();
            let verb = if is_store { "writes" } else { "reads" };
            refuse(id, format!("it {verb} no buffer `{name}`; it {verb} {}", names.join(", ")))
        }
    }
}

/// The statement directly in the body of a scope in which another stands.
pub(super) fn top_of(schedule: &Schedule, scope: Option<Id>, id: Id) -> Id {
    let body = match scope.and_then(|scope| schedule.tree.as_block(scope)) {
        Some(block) => block.body,
        None => schedule.tree.root,
    };
    match schedule.tree.get(body) {
        Node::Seq(_) => schedule.tree.child_towards(body, id).unwrap_or(body),
        _ => body,
    }
}

pub(super) fn use_instead(schedule: &mut Schedule, block: Id, buffer: Expr, cache: Expr) {
    let mut space = schedule.space();
    let mut replacing = Replacing::of([(buffer, cache)]);
    schedule.rewrite(block, &mut replacing, &mut space, |_, _, _| None);
}

/// A new buffer like another one, and loops around a block that copies a region to it, or from it.
fn copy_nest(
    schedule: &mut Schedule,
    space: &mut Space,
    buffer: Expr,
    scope: &str,
    region: &[Copied],
    is_to_cache: bool,
) -> (Expr, Id, Id) {
    let name = format!("{}_{scope}", schedule.var_name(buffer));
    let ty = schedule.body().ty(buffer).expect("a buffer has a type");
    let cache = schedule.new_buffer(&name, ty, if scope == "global" { "" } else { scope });
    let (mut iters, mut loops, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, Copied { values, domain }) in region.iter().enumerate() {
        let [var, each] =
            [format!("v{axis}"), format!("ax{axis}")].map(|name| schedule.index_var(&name));
        space.set_range(each, Range { min: Sum::default(), extent: values.extent.clone() });
        let value = space.node(each).add(&values.min);
        let end = domain.min.add(&domain.extent);
        if values != domain && !space.is_less(&value, &end) {
            conditions.push(schedule.less(space, &value, &end));
        }
        if values != domain && !space.is_natural(&value.sub(&domain.min)) {
            conditions.push(schedule.at_least(space, &value, &domain.min));
        }
        let [binding, min, extent, steps] = [&value, &domain.min, &domain.extent, &values.extent]
            .map(|sum| space.build(&mut schedule.rw, sum));
        iters.push(Iter { var, kind: schedule.kind_term(false), binding, min, extent });
        loops.push((each, steps));
    }
    let predicate = schedule.join(space, &conditions);
    let at: Vec<Expr> = iters.iter().map(|iter| iter.var).collect();
    let (from, to) = if is_to_cache { (buffer, cache) } else { (cache, buffer) };
    let value = schedule.rw.load(from, &at);
    let body = schedule.tree.add(Node::Store { buffer: to, value, indices: at });
    let block = schedule.tree.make(Node::Block(BlockNode {
        name: schedule.symbol(&name),
        iters,
        predicate,
        attrs: Attrs::NONE,
        init: None,
        body,
    }));
    let nest = schedule.loops_over(block, loops);
    (cache, nest, block)
}
