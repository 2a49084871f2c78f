//! Schedules tensor programs by what is known of them.
//!
//! ```ir
//! prim @scale(…) { schedule = "b = block(\"B\"); i = loops(b); parallel(i)" } {      prim @scale(…) { trace = "…" } {
//!   for %i in 0..4096 {                                                        =>      for %i in 0..4096 parallel {
//!     block "B" … } }                                                                    block "B" … } }
//! ```
//!
//! A program's own trace, its attribute `schedule`, comes first. What was measured, its attribute `tuned`, comes next: a trace, or
//! values of knobs; one that does not go is told of, and is no error. Otherwise the rules of the facet `schedule` are asked, for the
//! operator that it computes and then for any program, with the values of knobs that its attribute `knobs` names. What they tell
//! of their answer is its attribute `scheduled`. Programs without blocks, and those that were scheduled, are left alone.
//!
//! With `explain_schedules` a program also says which rules were asked for it before and did not match. `tir.LowerBlocks` comes afterwards.

use tenon_plugin_api::ir::TermView;
use tenon_plugin_api::prelude::*;
use tenon_plugin_api::program::OP_NAME;
use tenon_schedule::{Answered, Asked, OfProgram, TraceError, ask};

use crate::schedule::replay;

/// Attribute of a tensor program: the trace that is to be applied to it.
const SCHEDULE: &str = "schedule";
/// Attribute of a tensor program: values of knobs that are to be taken.
const KNOBS: &str = "knobs";
/// Attribute of a tensor program: how it runs best, as far as somebody has measured: `trace` or `knobs`, and `because`.
const TUNED: &str = "tuned";
/// Attribute of a tensor program: which rule scheduled it, with which knobs, why, and what that is thought to cost.
const SCHEDULED: &str = "scheduled";
/// Attribute of a tensor program: which rules were asked for it and did not match, each with its reason.
const DECLINED: &str = "declined";
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
fn apply_schedules(
    func: PrimFunc,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<PrimFunc> {
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
        return replay(&with_attrs(&func, attrs)?, &script, 0, cx);
    }
    if let Some(TermView::Dict(tuned)) = attrs.get(TUNED) {
        let plain = with_attrs(&func, cx.without_attr(func.attrs(), TUNED))?;
        if let Some(scheduled) = as_measured(&plain, tuned, cx)? {
            return Ok(scheduled);
        }
        return by_rules(&plain, &options, cx);
    }
    by_rules(&func, &options, cx)
}

#[derive(Options)]
struct Options {
    /// also say which rules were asked and did not match, and why: the attribute `declined` of a program
    #[option(default = false)]
    explain_schedules: bool,
}

/// Schedules a program by the rules.
fn by_rules(func: &PrimFunc, options: &Options, cx: &PassContext) -> Result<PrimFunc> {
    let Asked { answer, declined } = asked(func, cx)?;
    let mut attrs = func.attrs();
    if options.explain_schedules && !declined.is_empty() {
        let declined: Vec<Term> = declined.iter().map(|why| cx.symbol(why).into()).collect();
        attrs = cx.with_attr(attrs, DECLINED, AttrValue::Term(cx.list(&declined)));
    }
    let Some(Answered { trace, report }) = answer else {
        return if attrs == func.attrs() { Ok(func.clone()) } else { with_attrs(func, attrs) };
    };
    let report = AttrValue::Term(Term(report.0));
    let attrs = cx.with_attr(cx.without_attr(attrs, KNOBS), SCHEDULED, report);
    replay(&with_attrs(func, attrs)?, &trace, 0, cx)
}

/// What the rules answer.
fn answer(func: &PrimFunc, cx: &PassContext) -> Result<Option<Answered>> {
    Ok(asked(func, cx)?.answer)
}

/// Asks the rules.
fn asked(func: &PrimFunc, cx: &PassContext) -> Result<Asked> {
    let op = cx.terms().attrs(func.attrs()).str(OP_NAME).map(|name| cx.symbol(name));
    ask(&mut cx.rules::<OfProgram>(), &mut func.edit(), op, cx.target_attrs())
}

/// Schedules a program as somebody has measured that it runs best; nothing where that does not go any more.
fn as_measured(
    func: &PrimFunc,
    tuned: AttrsView<'_>,
    cx: &PassContext,
) -> Result<Option<PrimFunc>> {
    let because = tuned.str("because").unwrap_or_default();
    let tell = |report: Attrs| {
        let report = cx.with_attr(report, "because", because.into());
        cx.with_attr(func.attrs(), SCHEDULED, AttrValue::Term(Term(report.0)))
    };
    if let Some(trace) = tuned.str("trace")
        && let Ok(script) = trace.parse()
    {
        // What the rules would do tells how much there is to do, and which rule it was.
        let of_rules = answer(func, cx)?.map_or(Attrs::NONE, |answer| answer.report);
        let rule = tuned.str("rule").unwrap_or_default();
        let mut report = cx.with_attr(cx.without_attr(of_rules, KNOBS), "rule", rule.into());
        if let Some(knobs) = tuned.term(KNOBS) {
            report = cx.with_attr(report, KNOBS, AttrValue::Term(knobs));
        }
        if let Ok(scheduled) = replay(&with_attrs(func, tell(report))?, &script, 0, cx) {
            return Ok(Some(scheduled));
        }
    }
    if let Some(knobs) = tuned.term(KNOBS) {
        let attrs = cx.with_attr(func.attrs(), KNOBS, AttrValue::Term(knobs));
        if let Ok(Some(Answered { trace, report })) = answer(&with_attrs(func, attrs)?, cx) {
            return replay(&with_attrs(func, tell(report))?, &trace, 0, cx).map(Some);
        }
    }
    cx.warn(&format!(
        "what was measured of a program does not go any more, and the rules schedule it: {because}"
    ));
    Ok(None)
}

fn with_attrs(program: &PrimFunc, attrs: Attrs) -> Result<PrimFunc> {
    let mut rw = program.edit();
    let root = rw.with_attrs(program.view().root(), attrs);
    rw.set_root(root);
    Ok(rw.finish()?.into())
}
