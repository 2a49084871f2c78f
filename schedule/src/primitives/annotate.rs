//! What is said of a loop, for those who come behind.
//!
//! ```ir
//! for %i in 0..64 { … }      =>      for %i in 0..64 { settled = true } { … }
//! ```
//!
//! A key is one of [`KEYS`], each of which something reads; anything else is refused, since nobody would.

use tenon_plugin_api::ir::{AttrValue, Build, Context, STREAMS};

use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, Handle, Kind, Param, Primitive};

/// No pass changes how a loop and those inside of it run: none of them becomes parallel, lanes of vectors or copies of its body, or
/// one with another.
pub const SETTLED: &str = "settled";

/// The keys that there are: all of them stand at loops, and are true or false.
const KEYS: &[&str] = &[SETTLED, STREAMS];

pub(super) static ANNOTATE: Primitive = Primitive {
    name: "annotate",
    version: 1,
    summary: "Says of a loop that passes leave it, and those inside of it, as they are: `settled`; or that memory is asked early for what it reads: `streams`.",
    params: &[
        Param::new("loop", Kind::Loop),
        Param::new("key", Kind::Text),
        Param::new("value", Kind::Word(&["true", "false"])).or("true"),
    ],
    apply: annotate,
};

pub(super) static UNANNOTATE: Primitive = Primitive {
    name: "unannotate",
    version: 1,
    summary: "Takes back what was said of a loop.",
    params: &[Param::new("loop", Kind::Loop), Param::new("key", Kind::Text)],
    apply: unannotate,
};

fn annotate(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, key) = (args.id(0), known(args)?);
    let value = AttrValue::Bool(args.text(2) == "true");
    let each = schedule.tree.for_mut(id);
    let attrs = schedule.rw.with_cx(|cx| cx.with_attr(each.attrs, key, value));
    each.attrs = attrs;
    Ok(Vec::new())
}

fn unannotate(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, key) = (args.id(0), known(args)?);
    let each = schedule.tree.for_mut(id);
    let attrs = schedule.rw.with_cx(|cx| cx.without_attr(each.attrs, key));
    if attrs == each.attrs {
        return refuse(id, format!("nothing is said of the loop under `{key}`"));
    }
    each.attrs = attrs;
    Ok(Vec::new())
}

/// The key that is named.
fn known(args: &Args) -> Result<&'static str> {
    let given = args.text(1);
    match KEYS.iter().find(|&&key| key == given) {
        Some(key) => Ok(key),
        None => refuse(
            args.id(0),
            format!("nothing reads `{given}`; what can be said of a loop is {}", KEYS.join(", ")),
        ),
    }
}
