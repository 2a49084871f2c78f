//! What is made of a reduction's result element by element, inside of a loop around the reduction.
//!
//! ```ir
//! for %i_0 … { for %i_1 … { for %k … { block "C" } } }          for %i_0 … { for %i_1 … { for %k … { block "C" } }
//! for %i … { block "bias" … }                             =>      for %ax0 … { block "bias" … }
//! for %i … { block "relu" … }                                     for %ax0 … { block "relu" … } }
//! ```
//!
//! Those who read what the block writes follow it, and those who read what these write, each as `reverse_compute_at` does it: over
//! what was written in a step of the loop. They end before the first that is not a function of its spatial iterators, as another
//! reduction is; of the others each has to follow.

use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::Id;

use super::compute_at::run_behind;

pub(super) static EPILOGUE_AT: Primitive = Primitive {
    name: "epilogue_at",
    version: 1,
    summary: "Runs all that is made of a block's result, up to the next reduction, inside a loop around the block.",
    params: &[Param::new("block", Kind::Block), Param::new("loop", Kind::Loop)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, at) = (args.id(0), args.id(1));
    if !schedule.tree.loops_around(id).contains(&at) {
        return refuse(at, "the loop is not around the block");
    }
    let epilogue = behind(schedule, id);
    if epilogue.is_empty() {
        return refuse(id, "nothing is made of its result element by element");
    }
    for &block in &epilogue {
        if !schedule.tree.is_inside(block, at) {
            run_behind(schedule, block, at, "last")?;
        }
    }
    Ok(epilogue.into_iter().map(|id| Block(id).into()).collect())
}

/// The blocks that are made of what a block writes, in order, up to the first that is not complete.
fn behind(schedule: &Schedule, id: Id) -> Vec<Id> {
    let among = schedule.tree.blocks_of(schedule.tree.scope(id));
    let place = among.iter().position(|&other| other == id).unwrap_or(among.len());
    let mut written = schedule.buffers(id, true);
    let mut found = Vec::new();
    for &block in among.iter().skip(place + 1) {
        let reads = schedule.buffers(block, false);
        if !reads.iter().any(|buffer| written.contains(buffer)) {
            continue;
        }
        if schedule.why_incomplete(block, &among).is_some() {
            break;
        }
        written.extend(schedule.buffers(block, true));
        found.push(block);
    }
    found
}
