//! Loops of one step, and the order of iterators.

use tenon_plugin_api::ir::{Attrs, LoopKind, Symbol};

use crate::refusal::{Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{For, Node};

pub(super) static ADD_UNIT_LOOP: Primitive = Primitive {
    name: "add_unit_loop",
    version: 1,
    summary: "Puts a loop of one step around a loop or a block.",
    params: &[Param::new("around", Kind::LoopOrBlock)],
    apply: add_unit_loop,
};

pub(super) static REORDER_ITERATORS: Primitive = Primitive {
    name: "reorder_iterators",
    version: 1,
    summary: "Puts the iterators of a block in another order, by their numbers.",
    params: &[Param::new("block", Kind::Block), Param::new("order", Kind::Ints)],
    apply: reorder_iterators,
};

fn add_unit_loop(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let var = schedule.index_var("u");
    let (min, extent) = (schedule.int(0), schedule.int(1));
    let hole = schedule.tree.add(Node::Gone);
    schedule.tree.replace(id, hole);
    *schedule.tree.get_mut(hole) = Node::For(For {
        var,
        min,
        extent,
        kind: LoopKind::Serial,
        thread: Symbol(0),
        attrs: Attrs::NONE,
        body: id,
    });
    schedule.tree.adopt(hole);
    Ok(vec![Loop(hole).into()])
}

fn reorder_iterators(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let order: Vec<i64> = args.factors(1).into_iter().flatten().collect();
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..block.iters.len() as i64) {
        let count = block.iters.len();
        return refuse(id, format!("the order does not name each of its {count} iterators once"));
    }
    let iters = order.iter().map(|&at| block.iters[at as usize]).collect();
    schedule.tree.block_mut(id).iters = iters;
    Ok(Vec::new())
}
