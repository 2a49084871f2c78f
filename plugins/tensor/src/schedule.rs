//! Applies a trace of schedule primitives to tensor programs.
//!
//! ```ir
//! for %i in 0..130 {                        for %i_0 in 0..8 parallel { for %i_1 in 0..16 vectorized {
//!   block "B" (%v: spatial = %i)      =>        block "B" (%v: spatial in 0..130 = %i_0 * 16 + %i_1) …
//!     { %B[%v] = %A[%v] * 2.0 }             } }
//! }                                         for %i_tail in 0..2 { block "B_tail" … }
//! ```
//!
//! with `trace = "b = block(\"B\"); [i] = loops(b); [o, v, t] = split(i, [_, 16], tail = cut); parallel(o); vectorize(v)"`.
//! `docs/schedules.md` lists the primitives. The trace goes to the program that `program` names, or to all; where it is empty,
//! each program's own is applied: its attribute `schedule`, which is gone then. What was applied is the program's attribute `trace`.

use tenon_plugin_api::prelude::*;
use tenon_schedule::{Schedule, Script, TraceError};

/// Attribute of a tensor program: the trace that is to be applied to it.
const SCHEDULE: &str = "schedule";

/// Applies a trace of schedule primitives to tensor programs.
#[pass(name = "tir.Schedule", phase = "target")]
fn schedule(
    func: PrimFunc,
    module: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<PrimFunc> {
    if !options.program.is_empty() {
        match module.get(cx.symbol(&options.program)) {
            Some(named) if named.is_same(&func) => {}
            Some(named) if named.is_prim() => return Ok(func),
            _ => {
                let text = format!("there is no tensor program @{}", options.program);
                return Err(PassError::new(text));
            }
        }
    }
    let own = cx.terms().attrs(func.attrs()).str(SCHEDULE);
    let Some(text) = Some(options.trace.as_str()).filter(|text| !text.is_empty()).or(own) else {
        return Ok(func);
    };
    let script = text.parse().map_err(|error: TraceError| PassError::new(format!("{error}")))?;
    apply(&without_schedule(&func, cx)?.into(), &script)
}

#[derive(Options)]
struct Options {
    /// the instructions; empty for the attribute `schedule` of each program
    #[option(default = "")]
    trace: String,
    /// the program that is scheduled; empty for all
    #[option(default = "")]
    program: String,
}

fn apply(program: &PrimFunc, script: &Script) -> Result<PrimFunc> {
    let mut schedule = Schedule::of(program)?;
    match schedule.replay(script) {
        Ok(()) => schedule.finish(),
        Err(refusal) => Err(schedule.explain(&refusal)),
    }
}

fn without_schedule(program: &Function, cx: &PassContext) -> Result<Function> {
    let attrs = cx.without_attr(program.attrs(), SCHEDULE);
    if attrs == program.attrs() {
        return Ok(program.clone());
    }
    let mut rw = program.edit();
    let root = rw.with_attrs(program.view().root(), attrs);
    rw.set_root(root);
    rw.finish()
}
