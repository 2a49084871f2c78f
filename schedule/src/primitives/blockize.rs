//! A loop nest as one block, whose instances are tiles.
//!
//! ```ir
//! for %i_0 … { for %j … { for %i_1 in 0..16 {         for %i_0 … { for %j … {
//!   block "B" (%vi = %i_0 * 16 + %i_1, %vj = %j)  =>    block "B_o" (%vo = %i_0, %wo = %j) {
//!     { %B[%vi, %vj] = %A[%vi, %vj] }                     for %i_1 in 0..16 { block "B" (%vi = %vo * 16 + %i_1, %vj = %wo)
//! } } }                                                     { %B[%vi, %vj] = %A[%vi, %vj] } } } } }
//! ```
//!
//! What each iterator is bound to divides into whole tiles, which the loops around move, and places in one, which the loops inside
//! do. The initial statement of a reduction runs for all places of a tile at first, in loops of its own. A tile that is not full has
//! a predicate inside. `enclose.rs` makes one block of several.

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{Attrs, Build, Expr};

use crate::index::{AtomId, Fit, Range, Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{BlockNode, For, Id, Iter, Node};

use super::enclose::enclose;

pub(super) static BLOCKIZE: Primitive = Primitive {
    name: "blockize",
    version: 1,
    summary: "Makes one block of a loop with the block inside it, whose instances are tiles; or of a list of blocks.",
    params: &[Param::new("of", Kind::LoopOrBlocks)],
    apply,
};

/// What an iterator is bound to: `start + tile * extent + place`, of which the loops inside move the place.
struct Division {
    tile: Sum,
    extent: Sum,
    place: Sum,
}

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    if args.is_list(0) {
        return enclose(schedule, &args.ids(0));
    }
    let at = args.id(0);
    let Some(id) = schedule.only_block(at) else {
        return refuse(at, "the loop does not hold exactly one block");
    };
    let inner = inner_loops(schedule, at, id)?;
    check_block(schedule, id)?;
    let mut space = schedule.space();
    let divisions = divide(schedule, &mut space, id, &inner)?;
    check_moves(schedule, &mut space, id, &inner)?;
    let Some(block) = schedule.tree.as_block(id).cloned() else { return Ok(Vec::new()) };
    let outer = outer_iterators(schedule, &mut space, &block, &divisions);
    // The nest leaves its place to the new block, which is around it.
    let hole = schedule.tree.add(Node::Gone);
    schedule.tree.replace(at, hole);
    let values: Vec<Sum> = block
        .iters
        .iter()
        .zip(&divisions)
        .zip(&outer.iters)
        .map(|((iter, division), own)| {
            let start = space.read(schedule.body(), iter.min);
            let tiles = space.node(own.var).mul(&division.extent).unwrap_or_default();
            start.add(&tiles).add(&division.place)
        })
        .collect();
    let init =
        block.init.map(|init| init_nest(schedule, &mut space, &block, init, &values, &inner));
    rebind(schedule, &mut space, id, &values);
    schedule.tree.block_mut(id).init = None;
    let name = format!("{}_o", schedule.block_name(id));
    let name = schedule.symbol(&name);
    let node = BlockNode { name, init, body: at, ..outer };
    *schedule.tree.get_mut(hole) = Node::Block(node);
    schedule.tree.adopt(hole);
    Ok(vec![Block(hole).into()])
}

/// The loops from the one that is named on, each directly around the next.
fn inner_loops(schedule: &Schedule, at: Id, id: Id) -> Result<Vec<Id>> {
    let (mut inner, mut last) = (vec![at], at);
    while let Some(each) = schedule.tree.as_for(last) {
        if each.body == id {
            return Ok(inner);
        }
        if schedule.tree.as_for(each.body).is_none() {
            return refuse(last, "the loop holds more than a loop or the block");
        }
        last = each.body;
        inner.push(last);
    }
    refuse(at, "it is no loop")
}

/// The block may run tile by tile: its instances are independent, and each has its place.
fn check_block(schedule: &Schedule, id: Id) -> Result<()> {
    let has_init = schedule.tree.as_block(id).is_some_and(|block| block.init.is_some());
    let why = match has_init {
        true => schedule.why_no_reduction(id, &[id]),
        false if schedule.is_update(id, &[id]) => None,
        false => schedule.why_incomplete(id, &[id]),
    };
    match why.or_else(|| schedule.why_not_affine(id, Fit::Exact)) {
        Some(why) => refuse(id, format!("its instances make no tiles: {why}")),
        None => Ok(()),
    }
}

fn divide(schedule: &Schedule, space: &mut Space, id: Id, inner: &[Id]) -> Result<Vec<Division>> {
    let vars: Vec<AtomId> =
        inner.iter().filter_map(|&each| space.find(schedule.tree.as_for(each)?.var)).collect();
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let mut divisions = Vec::new();
    for iter in &block.iters {
        let [binding, min] = [iter.binding, iter.min].map(|expr| space.read(schedule.body(), expr));
        match division(space, &binding.sub(&min), &vars) {
            Some(division) => divisions.push(division),
            None => {
                let name = schedule.var_name(iter.var);
                return refuse(
                    id,
                    format!(
                        "what its iterator `{name}` is bound to does not divide into tiles and places there"
                    ),
                );
            }
        }
    }
    let places: Vec<Sum> = divisions.iter().map(|division| division.place.clone()).collect();
    match space.coverage(&places, &vars) {
        Some(_) => Ok(divisions),
        None => refuse(id, "the loops inside do not take each place of a tile once"),
    }
}

fn division(space: &mut Space, value: &Sum, vars: &[AtomId]) -> Option<Division> {
    let (mut place, mut start) = (Sum::default(), Sum::default());
    for (atoms, coefficient) in value.terms() {
        let term = Sum::product(atoms.clone(), *coefficient);
        let moves = space.nodes_of(&term).iter().any(|node| vars.contains(node));
        let part = if moves { &mut place } else { &mut start };
        *part = part.add(&term);
    }
    // Bounds in numbers and symbols alone: all tiles are of one size.
    let (low, high) = (space.lowest(&place)?, space.highest(&place)?);
    let is_of_inside = space.nodes_of(&place).iter().all(|node| vars.contains(node));
    if low.value() != Some(0) || !is_of_inside || !space.is_natural(&high) {
        return None;
    }
    let extent = high.add_int(1);
    let (tile, left) = space.divide(&start, &extent);
    (left.value() == Some(0)).then_some(Division { tile, extent, place })
}

/// Each loop inside moves iterators, those of a reduction or the others.
fn check_moves(schedule: &Schedule, space: &mut Space, id: Id, inner: &[Id]) -> Result<()> {
    let Some(block) = schedule.tree.as_block(id) else { return Ok(()) };
    for &each in inner {
        let Some(node) = schedule.tree.as_for(each) else { continue };
        let mut moves = [false; 2];
        for iter in &block.iters {
            let binding = space.read(schedule.body(), iter.binding);
            moves[schedule.is_reduce(iter.kind) as usize] |= space.mentions(&binding, node.var);
        }
        let extent = space.read(schedule.body(), node.extent);
        if moves == [false; 2] && extent.value() != Some(1) {
            return refuse(each, "the loop repeats what is inside without moving an iterator");
        }
        if moves == [true; 2] && block.init.is_some() {
            return refuse(each, "this loop moves iterators of the reduction and others");
        }
    }
    Ok(())
}

/// The new block without what is in it: an iterator for the tiles of each of the old one's.
fn outer_iterators(
    schedule: &mut Schedule,
    space: &mut Space,
    block: &BlockNode,
    divisions: &[Division],
) -> BlockNode {
    let (mut iters, mut conditions) = (Vec::new(), Vec::new());
    for (iter, division) in block.iters.iter().zip(divisions) {
        let extent = space.read(schedule.body(), iter.extent);
        // A quotient of symbols that are equal is not rounded.
        let tiles = match extent == division.extent {
            true => Sum::int(1),
            false => space.ceil_div(&extent, &division.extent),
        };
        let name = format!("{}_o", schedule.var_name(iter.var));
        let var = schedule.index_var(&name);
        space.set_range(var, Range { min: Sum::default(), extent: tiles.clone() });
        if !space.is_less(&division.tile, &tiles) {
            conditions.push(schedule.less(space, &division.tile, &tiles));
        }
        if !space.is_natural(&division.tile) {
            conditions.push(schedule.at_least(space, &division.tile, &Sum::default()));
        }
        let binding = space.build(&mut schedule.rw, &division.tile);
        let (min, extent) = (schedule.int(0), space.build(&mut schedule.rw, &tiles));
        iters.push(Iter { var, kind: iter.kind, binding, min, extent });
    }
    let predicate = schedule.join(space, &conditions);
    BlockNode { iters, predicate, attrs: Attrs::NONE, init: None, ..block.clone() }
}

/// Binds a block to other values, with a predicate where these may leave the domains of its iterators.
fn rebind(schedule: &mut Schedule, space: &mut Space, id: Id, values: &[Sum]) {
    schedule.tree.block_mut(id).predicate = None;
    let mut conditions = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let Some(&iter) = schedule.tree.as_block(id).and_then(|block| block.iters.get(at)) else {
            continue;
        };
        let [min, extent] = [iter.min, iter.extent].map(|expr| space.read(schedule.body(), expr));
        let end = min.add(&extent);
        if !space.is_less(value, &end) {
            conditions.push(schedule.less(space, value, &end));
        }
        let binding = space.build(&mut schedule.rw, value);
        schedule.tree.block_mut(id).iters[at].binding = binding;
    }
    schedule.add_predicate(space, id, &conditions);
}

/// The loops inside that move no iterator of the reduction, again, around a block of the initial statement.
fn init_nest(
    schedule: &mut Schedule,
    space: &mut Space,
    block: &BlockNode,
    init: Id,
    values: &[Sum],
    inner: &[Id],
) -> Id {
    let mut pairs: HashMap<Expr, Expr> = HashMap::default();
    let (mut iters, mut own) = (Vec::new(), Vec::new());
    for (iter, value) in block.iters.iter().zip(values) {
        if !schedule.is_reduce(iter.kind) {
            iters.push(*iter);
            own.push(value.clone());
        }
    }
    let (name, attrs) = (format!("{}_init", schedule.rw.name_of(block.name)), block.attrs);
    let name = schedule.symbol(&name);
    let node = BlockNode { name, iters, predicate: None, attrs, init: None, body: init };
    let made = schedule.tree.make(Node::Block(node));
    rebind(schedule, space, made, &own);
    let loops: Vec<For> = inner
        .iter()
        .filter_map(|&each| schedule.tree.as_for(each))
        .filter(|each| own.iter().any(|value| space.mentions(value, each.var)))
        .cloned()
        .collect();
    for iter in &block.iters {
        pairs.insert(iter.var, schedule.rw.rebuild(iter.var, &[]));
    }
    for iter in &mut schedule.tree.block_mut(made).iters {
        iter.var = pairs[&iter.var];
    }
    let nest = loops.into_iter().rev().fold(made, |body, each| {
        let var = schedule.rw.rebuild(each.var, &[]);
        pairs.insert(each.var, var);
        schedule.tree.make(Node::For(For { var, body, ..each }))
    });
    schedule.substitute(nest, pairs);
    nest
}
