//! Finding blocks and loops. These change nothing.

use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Block, Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::Id;

pub(super) static BLOCK: Primitive = Primitive {
    name: "block",
    version: 1,
    summary: "The block of a name.",
    params: &[Param::new("name", Kind::Text)],
    apply: |schedule, args| {
        let name = args.text(0);
        let all = schedule.tree.all();
        let mut found = all
            .iter()
            .filter(|&&id| schedule.tree.as_block(id).is_some() && schedule.block_name(id) == name);
        match (found.next(), found.next()) {
            (Some(&block), None) => Ok(vec![Block(block).into()]),
            (Some(_), Some(&second)) => {
                refuse(second, format!("several blocks are called \"{name}\""))
            }
            (None, _) => Err(Refusal::new(format!(
                "no block is called \"{name}\"; there are {}",
                block_names(schedule, &all)
            ))),
        }
    },
};

pub(super) static BLOCKS: Primitive = Primitive {
    name: "blocks",
    version: 1,
    summary: "All blocks that are not in one another, in order.",
    params: &[],
    apply: |schedule, _| Ok(blocks(schedule.tree.blocks_of(None))),
};

pub(super) static ANCHOR: Primitive = Primitive {
    name: "anchor",
    version: 1,
    summary: "The block that costs most: the reduction with most steps, or the last block where there is none.",
    params: &[],
    apply: |schedule, _| match anchor(schedule) {
        Some(block) => Ok(vec![Block(block).into()]),
        None => Err(Refusal::new("the program has no block")),
    },
};

pub(super) static LOOPS: Primitive = Primitive {
    name: "loops",
    version: 1,
    summary: "The loops around a block, outermost first.",
    params: &[Param::new("block", Kind::Block)],
    apply: |schedule, args| Ok(handles(schedule.tree.loops_around(args.id(0)))),
};

pub(super) static LOOP: Primitive = Primitive {
    name: "loop",
    version: 1,
    summary: "The loop to whose variable an iterator of a block is bound.",
    params: &[Param::new("block", Kind::Block), Param::new("iterator", Kind::Text)],
    apply: of_iterator,
};

pub(super) static PRODUCERS: Primitive = Primitive {
    name: "producers",
    version: 1,
    summary: "The blocks that write what a block reads, in order.",
    params: &[Param::new("block", Kind::Block)],
    apply: |schedule, args| Ok(blocks(schedule.producers_of(args.id(0)))),
};

pub(super) static CONSUMERS: Primitive = Primitive {
    name: "consumers",
    version: 1,
    summary: "The blocks that read what a block writes, in order.",
    params: &[Param::new("block", Kind::Block)],
    apply: |schedule, args| Ok(blocks(schedule.consumers_of(args.id(0)))),
};

pub(super) static CHILDREN: Primitive = Primitive {
    name: "children",
    version: 1,
    summary: "The blocks inside a loop or a block that are not in one another, in order.",
    params: &[Param::new("of", Kind::LoopOrBlock)],
    apply: |schedule, args| Ok(blocks(schedule.tree.blocks_below(args.id(0)))),
};

fn handles(loops: Vec<Id>) -> Vec<Handle> {
    loops.into_iter().map(|id| Loop(id).into()).collect()
}

fn blocks(blocks: Vec<Id>) -> Vec<Handle> {
    blocks.into_iter().map(|id| Block(id).into()).collect()
}

fn block_names(schedule: &Schedule, all: &[Id]) -> String {
    let blocks = all.iter().filter(|&&id| schedule.tree.as_block(id).is_some());
    let names: Vec<String> =
        blocks.map(|&id| format!("\"{}\"", schedule.block_name(id))).take(20).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// The reduction with most steps; of equal ones the first.
fn anchor(schedule: &Schedule) -> Option<Id> {
    let space = schedule.space();
    let mut best: Option<(i64, Id)> = None;
    let mut last = None;
    for id in schedule.tree.all() {
        let Some(block) = schedule.tree.as_block(id) else { continue };
        last = Some(id);
        if !block.iters.iter().any(|iter| schedule.is_reduce(iter.kind)) {
            continue;
        }
        // An extent that is not known counts as a large one.
        let steps = block.iters.iter().fold(1i64, |steps, iter| {
            let atom = space.find(iter.var);
            let extent = atom.and_then(|atom| space.range(atom)?.extent.value());
            steps.saturating_mul(extent.unwrap_or(1024).max(1))
        });
        if best.is_none_or(|(most, _)| steps > most) {
            best = Some((steps, id));
        }
    }
    best.map(|(_, id)| id).or(last)
}

fn of_iterator(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, name) = (args.id(0), args.text(1));
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let Some(iter) = block.iters.iter().find(|iter| schedule.var_name(iter.var) == name) else {
        let names: Vec<String> =
            block.iters.iter().map(|iter| schedule.var_name(iter.var)).collect();
        return refuse(id, format!("it has no iterator `{name}`; it has {}", names.join(", ")));
    };
    let loops = schedule.tree.loops_around(id);
    let is_bound =
        |each: &&Id| schedule.tree.as_for(**each).is_some_and(|each| each.var == iter.binding);
    match loops.iter().find(is_bound) {
        Some(&each) => Ok(vec![Loop(each).into()]),
        None => refuse(id, format!("`{name}` is bound to no single loop")),
    }
}
