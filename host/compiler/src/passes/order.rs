//! The order of phases: what a plan may not do, whoever wrote it.
//!
//! A plan enters phases in their order. A pass runs in the phases from the one that its manifest calls `from` to
//! the one that it calls `until`; where it says nothing, from the first phase on and up to the phase that it belongs
//! to. A pass that belongs to none runs anywhere, and so does every pass over a module that does not say its phase.

use super::plan::{Plan, PlanError, Step};
use crate::diagnostics::Diagnostic;
use crate::ir::{Module, PHASES};
use crate::registry::{PassId, PassRecord, Place, Registry};

/// How far a plan has come.
#[derive(Default)]
pub(super) struct Order {
    reached: Option<(usize, Place)>,
}

impl Order {
    /// The plan enters a phase.
    pub(super) fn enter(&mut self, phase: &str, place: &Place) -> Result<(), PlanError> {
        let Some(number) = number_of(phase) else { return Ok(()) };
        if let Some((reached, before)) = &self.reached
            && number < *reached
        {
            let message = format!(
                "the plan goes back to phase `{phase}`: it has come to `{}`",
                PHASES[*reached]
            );
            let error = place.error(message, "");
            let note = format!("`{}` is entered in {before}", PHASES[*reached]);
            return Err(error.note(note).help(in_order()).into());
        }
        self.reached = Some((number, place.clone()));
        Ok(())
    }

    /// A pass runs where the plan has come to.
    pub(super) fn step(
        &self,
        registry: &Registry,
        id: PassId,
        place: &Place,
    ) -> Result<(), PlanError> {
        let Some((reached, entered)) = &self.reached else { return Ok(()) };
        let Some(why) = misfit(registry.record(id), *reached) else { return Ok(()) };
        let error =
            place.error(format!("{why}, and the plan has come to `{}`", PHASES[*reached]), "");
        let error = error.note(format!("`{}` is entered in {entered}", PHASES[*reached]));
        Err(explain(error, registry, id).into())
    }
}

impl Plan {
    /// Whether the order of phases holds where the plan runs over this module.
    pub(super) fn check_order(
        &self,
        registry: &Registry,
        module: &Module,
    ) -> Result<(), PlanError> {
        let Some(said) = module.said_phase() else { return Ok(()) };
        let Some(reached) = number_of(said) else { return Ok(()) };
        for step in &self.steps {
            match step {
                Step::Phase(phase) if number_of(phase).is_some_and(|number| number < reached) => {
                    let message =
                        format!("the plan goes back to phase `{phase}`: the module is at `{said}`");
                    return Err(Diagnostic::error(message).help(in_order()).into());
                }
                Step::Phase(_) => return Ok(()),
                Step::Pass(pass) => {
                    let Some(id) = pass.pass.id() else { continue };
                    let Some(why) = misfit(registry.record(id), reached) else { continue };
                    let error = Diagnostic::error(format!("{why}, and the module is at `{said}`"));
                    let error = error.note(format!("`{}` is {}", pass.name, pass.reason));
                    return Err(explain(error, registry, id).into());
                }
                Step::Begin(_) | Step::End(_) => {}
            }
        }
        Ok(())
    }
}

fn number_of(phase: &str) -> Option<usize> {
    PHASES.iter().position(|other| *other == phase)
}

/// Why a pass cannot run in a phase. A phase that this host does not know bounds nothing.
fn misfit(record: &PassRecord, reached: usize) -> Option<String> {
    let until = if record.until.is_empty() { &record.phase } else { &record.until };
    match (number_of(&record.from), number_of(until)) {
        (Some(from), _) if reached < from => {
            Some(format!("`{}` runs from phase `{}` on", record.name, record.from))
        }
        (_, Some(last)) if reached > last => match record.until.is_empty() {
            true => Some(format!("`{}` belongs to phase `{until}`", record.name)),
            false => Some(format!("`{}` runs until phase `{until}`", record.name)),
        },
        _ => None,
    }
}

fn explain(error: Diagnostic, registry: &Registry, id: PassId) -> Diagnostic {
    let plugin = registry.plugin_of(id);
    error
        .note(format!("so says the manifest of {}", plugin.path.display()))
        .help("name it among the passes of a phase in which it runs")
}

fn in_order() -> String {
    format!("the phases are, in their order, {}", PHASES.join(", "))
}
