//! From a model to a lowered module: pipelines, and the run between them.

use crate::ir::Module;
use crate::passes::{self, PassContext, PassError, Plan};
use crate::registry::Registry;

/// Runs a plan over a module.
pub fn run_plan(
    registry: &Registry,
    plan: &Plan,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    passes::run(registry, plan, module, cx)
}
