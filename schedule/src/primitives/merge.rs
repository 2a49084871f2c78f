//! One loop of loops that stand one after the other.
//!
//! ```ir
//! for %i in 0..128 { block "B" … }            for %i in 0..128 {
//! for %j in 0..128 { block "C" … }      =>      block "B" …
//!                                               block "C" …        with %i for %j
//!                                             }
//! ```
//!
//! A step does what the loops did in that step, in their order. So each step must have its own part of what is written: a
//! loop that reads what a later step of an earlier loop writes would read it too early.

use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive, distinct};
use crate::tree::{Id, Node};

use super::fuse::plain;
use super::kinds::are_steps_apart;

pub(super) static MERGE: Primitive = Primitive {
    name: "merge",
    version: 1,
    summary: "Makes one loop of loops of one extent that stand directly one after the other.",
    params: &[Param::new("loops", Kind::Loops)],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let loops = args.ids(0);
    distinct(&loops, "a loop")?;
    let Some((&first, others)) = loops.split_first() else {
        return Err(Refusal::new("no loop is named"));
    };
    check(schedule, &loops)?;
    let var = plain(schedule, first)?.var;
    let mut bodies = vec![schedule.tree.body_of(first)];
    for &other in others {
        let (theirs, body) = (plain(schedule, other)?.var, schedule.tree.body_of(other));
        let hole = schedule.tree.add(Node::Gone);
        schedule.tree.replace(other, hole);
        schedule.tree.remove(hole);
        *schedule.tree.get_mut(other) = Node::Gone;
        schedule.substitute(body, [(theirs, var)]);
        bodies.push(body);
    }
    let mut stmts: Vec<Id> = Vec::new();
    for body in bodies {
        match schedule.tree.get(body) {
            Node::Seq(inner) => stmts.extend(inner),
            _ => stmts.push(body),
        }
    }
    let body = schedule.tree.make(Node::Seq(stmts));
    schedule.tree.for_mut(first).body = body;
    schedule.tree.adopt(first);
    match are_steps_apart(schedule, first, var) {
        true => Ok(vec![Loop(first).into()]),
        false => refuse(first, "its steps do not have parts of their own of what they write"),
    }
}

/// The loops have one extent and one kind, and stand in a list with nothing between them.
fn check(schedule: &Schedule, loops: &[Id]) -> Result<()> {
    let mut space = schedule.space();
    let first = plain(schedule, loops[0])?;
    let extent = space.read(schedule.body(), first.extent);
    for pair in loops.windows(2) {
        let each = plain(schedule, pair[1])?;
        if space.read(schedule.body(), each.extent) != extent {
            return refuse(pair[1], "its extent is not that of the first loop");
        }
        if each.kind != first.kind {
            return refuse(pair[1], "it runs in another way than the first loop");
        }
        let parent = schedule.tree.parent(pair[0]);
        let stands_next = parent.is_some_and(|parent| match schedule.tree.get(parent) {
            Node::Seq(stmts) => stmts.windows(2).any(|two| two == pair),
            _ => false,
        });
        if !stands_next {
            return refuse(pair[1], "it does not stand directly behind the loop before it");
        }
    }
    Ok(())
}
