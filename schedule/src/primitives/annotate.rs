//! What is said of buffers, without a change of what is computed.

use crate::exprs::Replacing;
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::Node;

use super::cache::{SCOPES, named};

pub(super) static SET_SCOPE: Primitive = Primitive {
    name: "set_scope",
    version: 1,
    summary: "Says in which memory a buffer that a block writes is made.",
    params: &[
        Param::new("block", Kind::Block),
        Param::new("buffer", Kind::Text),
        Param::new("scope", Kind::Word(SCOPES)),
    ],
    apply: set_scope,
};

fn set_scope(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let buffer = named(schedule, id, args.text(1), true)?;
    if !schedule.all_allocated().contains(&buffer) {
        return refuse(id, "the buffer is a parameter, which is made elsewhere");
    }
    let Some(ty) = schedule.body().ty(buffer) else { return refuse(id, "the buffer has no type") };
    let scope = args.text(2).to_owned();
    let name = schedule.var_name(buffer);
    let new = schedule.new_buffer(&name, ty, if scope == "global" { "" } else { &scope });
    let root = schedule.tree.root;
    for id in schedule.tree.all() {
        if let Node::Alloc(made) = schedule.tree.get_mut(id)
            && *made == buffer
        {
            *made = new;
        }
    }
    let mut space = schedule.space();
    let mut replacing = Replacing::of([(buffer, new)]);
    schedule.rewrite(root, &mut replacing, &mut space, |_, _, _| None);
    Ok(Vec::new())
}
