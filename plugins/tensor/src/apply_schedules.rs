//! Schedules tensor programs by what is known of them.
//!
//! ```ir
//! prim @scale(…) { schedule = "b = block(\"B\"); i = loops(b); parallel(i)" } {      prim @scale(…) { trace = "…" } {
//!   for %i in 0..4096 {                                                        =>      for %i in 0..4096 parallel {
//!     block "B" … } }                                                                    block "B" … } }
//! ```
//!
//! A program's own trace, its attribute `schedule`, comes first; otherwise the rules of the facet `schedule` are asked, for the
//! operator that it computes and then for any program, with the values of knobs that its attribute `knobs` names. What they tell
//! of their answer is its attribute `scheduled`. Programs without blocks, and those that were scheduled, are left alone.
//!
//! `tir.LowerBlocks` comes afterwards.

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::program::OP_NAME;
use tenon_schedule::{Answered, OfProgram, TraceError, ask};

use crate::schedule::replay;

/// Attribute of a tensor program: the trace that is to be applied to it.
const SCHEDULE: &str = "schedule";
/// Attribute of a tensor program: values of knobs that are to be taken.
const KNOBS: &str = "knobs";
/// Attribute of a tensor program: which rule scheduled it, with which knobs, why, and what that is thought to cost.
const SCHEDULED: &str = "scheduled";
/// Attribute of a tensor program: what was applied to it.
const TRACE: &str = "trace";

/// Schedules tensor programs by what is known of them.
#[pass(
    name = "tir.ApplySchedules",
    aliases = ["s_tir.dlight.ApplyDefaultSchedule", "tir.transform.DefaultGPUSchedule"],
    phase = "target",
    asks = ["schedule", "intrinsic", "reducer"],
    before = ["tir.LowerBlocks"],
    opt_level = 1,
    idempotent = true
)]
fn apply_schedules(func: PrimFunc, _: &Module, cx: &PassContext) -> Result<PrimFunc> {
    let attrs = cx.terms().attrs(func.attrs());
    let body = func.view();
    let has_blocks = body.post_order().any(|expr| body.kind(expr) == Kind::BLOCK);
    if !has_blocks || attrs.str(TRACE).is_some() {
        return Ok(func);
    }
    if let Some(own) = attrs.str(SCHEDULE) {
        let script = own.parse();
        let script = script.map_err(|error: TraceError| PassError::new(format!("{error}")))?;
        let attrs = cx.without_attr(func.attrs(), SCHEDULE);
        return replay(&with_attrs(&func, attrs)?, &script, cx);
    }
    let op = attrs.str(OP_NAME).map(|name| cx.symbol(name));
    let mut rw = func.edit();
    let answer = ask(&mut cx.rules::<OfProgram>(), &mut rw, op, cx.target_attrs())?;
    let Some(Answered { trace, report }) = answer else { return Ok(func) };
    let report = AttrValue::Term(Term(report.0));
    let attrs = cx.with_attr(cx.without_attr(func.attrs(), KNOBS), SCHEDULED, report);
    replay(&with_attrs(&func, attrs)?, &trace, cx)
}

fn with_attrs(program: &PrimFunc, attrs: Attrs) -> Result<PrimFunc> {
    let mut rw = program.edit();
    let root = rw.with_attrs(program.view().root(), attrs);
    rw.set_root(root);
    Ok(rw.finish()?.into())
}
