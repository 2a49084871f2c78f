//! Running passes: a textual pipeline becomes a plan, and the manager runs the plan.
//!
//! The manager's loop is small. Timing, printing, checking and counting are instruments around it.

mod context;
mod instruments;
mod manager;
mod options;
mod pipeline;
mod plan;
mod reproducer;

pub use context::{FunctionTime, Instrument, PassContext, StepInfo, StepOutcome};
pub use instruments::{
    Hashes, PassLimit, PrintIr, PrintWhen, Record, Snapshot, Statistics, Timing, Trace, Validate,
    VerifyEach,
};
pub use manager::{PassError, run};
pub use pipeline::{PassSpec, Pipeline, PipelineError};
pub use plan::{Plan, PlanError, Reason, Step, plan};
pub use reproducer::{PluginDigest, Reproducer};
