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
//! `docs/schedules.md` lists the primitives. The trace goes to the program that `program` names, or to all. What was applied is the
//! program's attribute `trace`, in which stands what was drawn: `seed` says how that is done.

use tenon_plugin_api::prelude::*;
use tenon_schedule::{Schedule, Script, TraceError};

/// Applies a trace of schedule primitives to tensor programs.
#[pass(name = "tir.Schedule", phase = "target", asks = ["intrinsic", "reducer"])]
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
    let script = options.trace.parse();
    let script = script.map_err(|error: TraceError| PassError::new(format!("{error}")))?;
    replay(&func, &script, options.seed, cx)
}

#[derive(Options)]
struct Options {
    /// the instructions
    #[option(default = "")]
    trace: String,
    /// the program that is scheduled; empty for all
    #[option(default = "")]
    program: String,
    /// by which numbers decisions are drawn that the trace leaves open
    #[option(default = 0)]
    seed: i64,
}

/// The program with a trace applied to it. Where floats are strict their sums keep their order.
pub(crate) fn replay(
    program: &PrimFunc,
    script: &Script,
    seed: i64,
    cx: &PassContext,
) -> Result<PrimFunc> {
    if script.is_empty() {
        return Ok(program.clone());
    }
    let mut schedule = Schedule::of(program)?;
    schedule.seed(seed as u64);
    if cx.keeps_floats() {
        schedule.keep_order();
    }
    match schedule.replay(script) {
        Ok(()) => schedule.finish(),
        Err(refusal) => Err(schedule.explain(&refusal)),
    }
}
