//! Running passes: a textual pipeline becomes a plan, and the manager runs the plan.
//!
//! The manager's loop is small. Timing, printing, checking and counting are instruments around it.

mod context;
mod instruments;
mod manager;
mod options;
mod pipeline;
mod placement;
mod plan;
mod reproducer;

pub use context::{FunctionTime, Instrument, PassContext, StepInfo, StepOutcome};
pub use instruments::{
    Hashes, PassLimit, PrintIr, PrintWhen, Record, Snapshot, Statistics, Timing, Trace, Validate,
    VerifyEach,
};
pub use manager::{PassError, run};
pub use options::StepOption;
pub use pipeline::{Element, OptionSpec, PassSpec, Pipeline, PipelineError, Word};
pub use plan::{LeftOut, PassStep, Plan, PlanError, Reason, Step, configured_options, plan};
pub use reproducer::{PluginDigest, Reproducer};
