//! `--validate=compiled`: what is compiled of a lowered module, beside what the module before the pipeline computes.

use super::output::{Failure, note};
use crate::ir::Module;
use crate::passes::{Plan, Settings, Step, Validate};
use crate::target::Target;
use crate::validate::{Reference, Tolerance, compare_compiled};

/// Compares both on inputs of seed 0, as closely as the passes that ran allow.
pub(super) fn validate(
    before: &Module,
    lowered: &Module,
    plan: &Plan,
    settings: &Settings,
    target: &Target,
) -> Result<(), Failure> {
    let mut reference = Reference::with_limits(before, 0, Validate::limits(settings));
    let parts = plan.steps.iter().filter_map(|step| match step {
        Step::Pass(step) => step.pass.tolerance(),
        _ => None,
    });
    parts.for_each(|part| reference.tolerate(Tolerance::part(part)));
    let function = compare_compiled(&reference, lowered, target)
        .map_err(|error| Failure::new(error.to_string()))?;
    note(format!("validate: what was compiled of @{function} computes what the evaluator does"));
    Ok(())
}
