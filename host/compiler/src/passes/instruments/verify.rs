//! Checks between passes.

use crate::check::{Violation, check, check_changed};
use crate::diagnostics::Diagnostic;
use crate::ir::Module;
use crate::passes::{Instrument, StepInfo, StepOutcome};

/// Checks that the module is well formed: the one that the passes are given, and what each pass makes of it.
#[derive(Default)]
pub struct VerifyEach {
    /// The module that was checked last.
    checked: Option<Module>,
}

impl VerifyEach {
    fn verify(&mut self, module: &Module, whose: &str) -> Result<(), Box<Diagnostic>> {
        let violations = match &self.checked {
            Some(checked) => check_changed(checked, module),
            None => check(module),
        };
        self.checked = Some(module.clone());
        match violations.first() {
            Some(first) => Err(Box::new(describe(first, violations.len() - 1, whose))),
            None => Ok(()),
        }
    }
}

fn describe(first: &Violation, others: usize, whose: &str) -> Diagnostic {
    let mut diagnostic = first.to_diagnostic();
    diagnostic.message = format!("{whose} is not well formed: {}", diagnostic.message);
    diagnostic.more_places(others)
}

impl Instrument for VerifyEach {
    fn before(&mut self, _: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        self.verify(module, "the module before it")
    }

    fn after(&mut self, _: StepInfo<'_>, outcome: StepOutcome<'_>) -> Result<(), Box<Diagnostic>> {
        match outcome {
            StepOutcome::Ran { after, .. } => self.verify(after, "the module that it left"),
            StepOutcome::Skipped(_) | StepOutcome::Failed => Ok(()),
        }
    }
}
