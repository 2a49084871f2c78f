//! What phases promise: a module enters one when the rules of that phase hold, and the module that a plan leaves keeps
//! those of the phase that it says it is in.
//!
//! The name of a rule is the fact that a pass establishes, so the error names the passes that were to do it.

use std::collections::BTreeSet;

use super::error::PassError;
use super::manager::Manager;
use super::plan::Step;
use crate::check::check_phase;
use crate::diagnostics::Diagnostic;
use crate::ir::{Context, Module, PHASES};
use crate::registry::{PassId, Registry};

/// The module that was found to keep its phase last, and the step behind that.
pub(super) struct Kept {
    module: Module,
    next: usize,
}

impl Kept {
    /// A module is what it says before anything has run.
    pub(super) fn new(module: &Module) -> Self {
        Self { module: module.clone(), next: 0 }
    }
}

impl Manager<'_> {
    /// The module enters a phase; it does not behind the last pass that an instrument lets run.
    pub(super) fn enters(&mut self, phase: &str, number: usize) -> Result<(), PassError> {
        if self.is_over() {
            return Ok(());
        }
        let mut entered = self.module.clone();
        entered.attrs = entered.cx().with_attr(entered.attrs, "phase", phase.into());
        if let Some(diagnostic) = self.broken_promise(&entered, phase, number) {
            return Err(PassError::Phase {
                what: "cannot enter",
                phase: phase.to_owned(),
                step: number,
                module: self.module.clone(),
                diagnostic,
            });
        }
        self.module = entered;
        self.kept = Kept { module: self.module.clone(), next: number + 1 };
        Ok(())
    }

    /// Whether an instrument lets nothing more run.
    pub(super) fn is_over(&self) -> bool {
        self.cx.instruments.iter().any(|instrument| instrument.is_over())
    }

    /// The plan is through.
    pub(super) fn leaves(&self) -> Result<(), PassError> {
        if self.module.is_identical(&self.kept.module) {
            return Ok(());
        }
        let phase = self.module.phase();
        match self.broken_promise(&self.module, phase, self.plan.steps.len()) {
            None => Ok(()),
            Some(diagnostic) => Err(PassError::Phase {
                what: "does not keep",
                phase: phase.to_owned(),
                step: self.kept.next,
                module: self.kept.module.clone(),
                diagnostic,
            }),
        }
    }

    /// What is wrong first with a module that is to be in a phase before the step of this number.
    fn broken_promise(
        &self,
        module: &Module,
        phase: &str,
        number: usize,
    ) -> Option<Box<Diagnostic>> {
        let violations = check_phase(module, phase);
        let first = violations.first()?;
        let mut diagnostic = first.to_diagnostic().more_places(violations.len() - 1);
        let passes = establishing(self.registry, first.rule);
        if passes.is_empty() {
            let text = format!("no pass that is enabled establishes `{}`", first.rule);
            return Some(Box::new(diagnostic.note(text)));
        }
        for &id in &passes {
            let (name, state) = (&self.registry.record(id).name, self.state_of(id, number));
            diagnostic = diagnostic.note(format!("`{name}` establishes `{}`; {state}", first.rule));
        }
        Some(Box::new(diagnostic.help(help(self.registry, &passes))))
    }

    /// What became of a pass before the step of a number.
    fn state_of(&self, id: PassId, number: usize) -> &'static str {
        let of_pass = |at: &usize| match &self.plan.steps[*at] {
            Step::Pass(step) => step.pass.id() == Some(id),
            Step::Phase(_) | Step::Begin(_) | Step::End(_) => false,
        };
        match (0..number).rfind(of_pass) {
            None => "it is not among the passes of the plan before this",
            Some(at) if !self.choice.is_on(at) => "it is disabled, or above the optimization level",
            Some(_) => "it was to do so before this",
        }
    }
}

/// The enabled passes whose manifests say that they establish a fact.
pub fn establishing(registry: &Registry, fact: &str) -> Vec<PassId> {
    let says_so = |id: &PassId| registry.record(*id).establishes.iter().any(|other| other == fact);
    registry.passes().filter(|&id| registry.is_enabled(id)).filter(says_so).collect()
}

/// What to do so that one of these passes runs.
pub fn help(registry: &Registry, passes: &[PassId]) -> String {
    let names: Vec<String> =
        passes.iter().map(|&id| format!("`{}`", registry.record(id).name)).collect();
    let phases: BTreeSet<&str> =
        passes.iter().map(|&id| registry.record(id).phase.as_str()).collect();
    let known = phases.into_iter().filter(|phase| PHASES.contains(phase));
    let phases = known.map(|phase| format!(" or `phase({phase})`"));
    format!("run {}{} before", names.join(" or "), phases.collect::<String>())
}
