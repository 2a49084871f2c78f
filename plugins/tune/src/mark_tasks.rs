//! Says of tensor programs what they are known by in a database, for who measures them.
//!
//! ```ir
//! prim @fused_dense_add(…) { op_name = "dense_add" } { … }
//!   => prim @fused_dense_add(…) { op_name = "dense_add", task = { anchor = "91ab…", program = "5f0c…", sizes = "07d2…", target = "c2…" } } { … }
//! ```
//!
//! Programs that have no blocks, or a schedule of their own, are left alone.

use tenon_plugin_api::ir::AttrsView;
use tenon_plugin_api::prelude::*;

use crate::apply_database::TUNED;
use crate::keys::{key_of_target, keys_of};

/// Attribute of a tensor program: what it is known by.
const TASK: &str = "task";

/// Says of tensor programs what they are known by in a database.
#[pass(
    name = "tune.MarkTasks",
    aliases = ["relax.MetaScheduleExtractTasks"],
    phase = "fuse",
    opt_level = 1,
    idempotent = true
)]
fn mark_tasks(func: PrimFunc, _: &Module, cx: &PassContext) -> Result<PrimFunc> {
    let body = func.view();
    let attrs = body.attrs(body.root());
    let is_scheduled =
        ["schedule", "trace"].iter().any(|key| cx.terms().attrs(attrs).get(key).is_some());
    if is_scheduled {
        return Ok(func);
    }
    Ok(marked(&func, cx.target(), cx)?.unwrap_or(func))
}

/// A program that says what it is known by on a target; nothing where it has no blocks.
pub(crate) fn marked(
    func: &PrimFunc,
    target: AttrsView<'_>,
    cx: &PassContext,
) -> Result<Option<PrimFunc>> {
    let Some(keys) = keys_of(func)? else { return Ok(None) };
    let target = key_of_target(target, cx.terms());
    let task = cx.attrs(&[
        ("anchor", keys.anchor.as_str().into()),
        ("program", keys.program.as_str().into()),
        ("sizes", keys.sizes.as_str().into()),
        ("target", target.as_str().into()),
    ]);
    let mut rw = func.edit();
    let body = func.view();
    // What was measured before is no part of what is measured.
    let attrs = cx.without_attr(body.attrs(body.root()), TUNED);
    let attrs = cx.with_attr(attrs, TASK, AttrValue::Term(Term(task.0)));
    let root = rw.with_attrs(body.root(), attrs);
    rw.set_root(root);
    Ok(Some(rw.finish()?.into()))
}
