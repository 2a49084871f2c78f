//! `--validate=compiled`: what is compiled of a lowered module, beside what the module before the pipeline computes.

use super::output::Failure;
use crate::ir::Module;
use crate::passes::{Plan, Settings};
use crate::target::Target;

/// Compares both on inputs of seed 0, as closely as the passes that ran allow.
#[cfg(feature = "llvm")]
pub(super) fn validate(
    before: &Module,
    lowered: &Module,
    plan: &Plan,
    settings: &Settings,
    target: &Target,
) -> Result<(), Failure> {
    use crate::passes::{Step, Validate};
    use crate::validate::{Reference, Tolerance, compare_compiled};

    let mut reference = Reference::with_limits(before, 0, Validate::limits(settings));
    let parts = plan.steps.iter().filter_map(|step| match step {
        Step::Pass(step) => step.pass.tolerance(),
        _ => None,
    });
    parts.for_each(|part| reference.tolerate(Tolerance::part(part)));
    let function = compare_compiled(&reference, lowered, target)
        .map_err(|error| Failure::new(error.to_string()))?;
    super::output::note(format!(
        "validate: what was compiled of @{function} computes what the evaluator does"
    ));
    Ok(())
}

/// Says that there is no code to compare.
#[cfg(not(feature = "llvm"))]
pub(super) fn validate(
    _: &Module,
    _: &Module,
    _: &Plan,
    _: &Settings,
    _: &Target,
) -> Result<(), Failure> {
    Err(Failure::new("`--validate=compiled` needs LLVM, and this program was built without"))
}
