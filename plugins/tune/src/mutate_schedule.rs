//! Puts another schedule, which differs in one decision, in the place of a program's own.
//!
//! ```ir
//! prim @rows(…) { mutation = 7, schedule = "…; [i_0, i_1] = split(i, [_, 16]); vectorize(i_1)" } { … }
//!   => prim @rows(…) { schedule = "…; [i_0, i_1] = split(i, [_, 8]); vectorize(i_1)" } { … }
//! ```
//!
//! Which decision it is follows from the program's attribute `mutation`; programs without it are left alone. It is an error where such a
//! program has no schedule of its own, where nothing in it may be another, and where a primitive refuses the other one.

use tenon_plugin_api::prelude::*;
use tenon_schedule::{Schedule, Script, TraceError};

/// Attribute of a tensor program: which decision of its schedule becomes another, and which one.
const MUTATION: &str = "mutation";
/// Attribute of a tensor program: the trace that is to be applied to it.
const SCHEDULE: &str = "schedule";

/// Puts a schedule that differs in one decision in the place of a program's own.
#[pass(name = "tune.MutateSchedule", phase = "fuse", asks = ["intrinsic", "reducer"])]
fn mutate_schedule(func: PrimFunc, _: &Module, cx: &PassContext) -> Result<PrimFunc> {
    let body = func.view();
    let attrs = body.attrs(body.root());
    let Some(seed) = cx.terms().attrs(attrs).int(MUTATION) else { return Ok(func) };
    let Some(own) = cx.terms().attrs(attrs).str(SCHEDULE) else {
        return Err(PassError::new("it has no attribute `schedule` that could be another"));
    };
    let script: Script =
        own.parse().map_err(|error: TraceError| PassError::new(format!("{error}")))?;
    let Some(other) = script.mutated(seed as u64) else {
        return Err(PassError::new("nothing in its schedule may be another"));
    };
    let mut schedule = Schedule::of(&func)?;
    if cx.keeps_floats() {
        schedule.keep_order();
    }
    if let Err(refusal) = schedule.replay(&other) {
        return Err(schedule.explain(&refusal));
    }
    let trace = schedule.trace().to_string();
    let mut rw = func.edit();
    let attrs = cx.with_attr(cx.without_attr(attrs, MUTATION), SCHEDULE, trace.as_str().into());
    let root = rw.with_attrs(body.root(), attrs);
    rw.set_root(root);
    Ok(rw.finish()?.into())
}
