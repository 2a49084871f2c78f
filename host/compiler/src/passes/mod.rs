//! Running passes: a textual pipeline, or a pass as a value, becomes a plan, and the manager runs the plan.
//!
//! The manager's loop is small. Timing, printing, checking and counting are instruments around it.

mod blocks;
mod choice;
mod context;
mod error;
mod execute;
mod facts;
mod instrument;
mod instruments;
mod isolated;
mod lists;
mod manager;
mod options;
mod order;
mod own;
mod pass;
mod pipeline;
mod placement;
mod plan;
mod planner;
mod promises;
mod reproducer;
mod requirements;
mod settings;
mod skipped;
mod sources;

pub use blocks::Block;
pub use context::{PassContext, Scope};
pub use error::PassError;
pub use instrument::{FunctionTime, Instrument, StepInfo, StepOutcome};
pub use instruments::{
    Dump, FromPlugin, Hashes, PassLimit, PrintIr, PrintWhen, Record, Snapshot, Statistics, Timing,
    Trace, Validate, VerifyEach,
};
pub use isolated::{serve_passes, serve_passes_of_text};
pub use manager::run;
pub use options::StepOption;
pub use own::{OwnPasses, RegisterError};
pub use pass::{GroupKind, Pass};
pub use pipeline::{Element, OptionSpec, PassSpec, Pipeline, PipelineError, Word};
pub use plan::required_by;
pub use plan::{GroupStep, LeftOut, PassStep, Plan, PlanError, Reason, Step};
pub use planner::{configured_options, plan, plan_with, plan_with_own};
pub use promises::{establishing, help as help_to_establish};
pub use reproducer::{PluginDigest, Reproducer};
pub use settings::{Declared, HostOption, Settings};
