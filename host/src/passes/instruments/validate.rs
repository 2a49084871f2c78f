//! Compares what the module computes, between passes.

use crate::diagnostics::Diagnostic;
use crate::ir::{Context, Module};
use crate::passes::{Instrument, StepInfo, StepOutcome};
use crate::validate::{Reference, Tolerance};

/// Evaluates the module's public functions on random inputs before the first pass and after each that changes
/// something, and stops at the first that changes a result.
pub struct Validate {
    seed: u64,
    tolerance: Tolerance,
    reference: Option<Reference>,
}

impl Validate {
    /// Inputs come from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, tolerance: Tolerance::default(), reference: None }
    }

    /// Sets how much floats may differ.
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }
}

impl Instrument for Validate {
    fn before(&mut self, _: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        let (seed, tolerance) = (self.seed, self.tolerance);
        self.reference
            .get_or_insert_with(|| Reference::new(module, seed).with_tolerance(tolerance));
        Ok(())
    }

    fn after(
        &mut self,
        info: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let StepOutcome::Ran { before, after, .. } = outcome else { return Ok(()) };
        let is_new = !info.is_group() && !after.is_identical(before);
        let Some(reference) = self.reference.as_ref().filter(|_| is_new) else { return Ok(()) };
        match reference.advance(after) {
            Ok(next) => {
                self.reference = Some(next);
                Ok(())
            }
            Err(difference) => {
                let name = after.cx().terms().str(difference.function);
                let message = format!("it changed what @{name} computes: {}", difference.how);
                let note = format!("the inputs are those of seed {}", self.seed);
                Err(Box::new(Diagnostic::error(message).note(note)))
            }
        }
    }
}
