//! The memory in which a buffer of the program's own is made.

use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};

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
    let scope = args.text(2);
    let new = schedule.in_scope(buffer, if scope == "global" { "" } else { scope });
    schedule.make_instead(buffer, new);
    Ok(Vec::new())
}
