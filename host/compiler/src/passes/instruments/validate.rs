//! Compares what the module computes, between passes.

use std::time::Duration;

use crate::diagnostics::Diagnostic;
use crate::diagnostics::count_of;
use crate::eval::Limits;
use crate::ir::{Context, Module};
use crate::passes::{HostOption, Instrument, Settings, StepInfo, StepOutcome};
use crate::validate::{Reference, Tolerance};

/// Memory that an evaluation may use.
static MEMORY: HostOption = HostOption {
    key: "validate.memory",
    default: 4096,
    min: 1,
    max: 1 << 30,
    help: "MiB that an evaluation may use, without arguments and constants",
};

/// Steps that an evaluation may take.
static STEPS: HostOption = HostOption {
    key: "validate.steps",
    default: 1 << 34,
    min: 1,
    max: i64::MAX,
    help: "instructions of tensor programs and elements of results that an evaluation may take",
};

/// Seconds that one call of an operator may take.
static PATIENCE: HostOption = HostOption {
    key: "validate.patience",
    default: 600,
    min: 1,
    max: 1 << 30,
    help: "seconds that one call of a plugin's operator may take in an evaluation",
};

inventory::submit!(&MEMORY);
inventory::submit!(&STEPS);
inventory::submit!(&PATIENCE);

/// Evaluates the module's public functions on random inputs before the first pass and after each that changes
/// something, and stops at the first that changes a result.
pub struct Validate {
    seed: u64,
    tolerance: Tolerance,
    limits: Limits,
    reference: Option<Reference>,
    /// How many passes were compared.
    compared: usize,
}

impl Validate {
    /// Inputs come from `seed`.
    pub fn new(seed: u64) -> Self {
        let (tolerance, limits) = (Tolerance::default(), Limits::default());
        Self { seed, tolerance, limits, reference: None, compared: 0 }
    }

    /// Sets how much floats may differ.
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets how much an evaluation may take.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the settings say of the limits.
    pub fn limits(settings: &Settings) -> Limits {
        let (memory, steps) = (MEMORY.get(settings), STEPS.get(settings));
        let bytes = memory.unsigned_abs() << 20;
        let patience = Some(Duration::from_secs(PATIENCE.get(settings).unsigned_abs()));
        Limits { bytes, steps: steps.unsigned_abs(), patience, ..Limits::default() }
    }
}

impl Instrument for Validate {
    fn before(&mut self, _: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        let (seed, tolerance, limits) = (self.seed, self.tolerance, self.limits);
        self.reference.get_or_insert_with(|| {
            Reference::with_limits(module, seed, limits).with_tolerance(tolerance)
        });
        Ok(())
    }

    fn after(
        &mut self,
        info: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let StepOutcome::Ran { before, after, .. } = outcome else { return Ok(()) };
        let is_new = !info.is_group() && !after.is_identical(before);
        let Some(reference) = self.reference.as_mut().filter(|_| is_new) else { return Ok(()) };
        if let Some(part) = info.step.pass.tolerance() {
            reference.tolerate(Tolerance::part(part));
        }
        match reference.advance(after) {
            Ok(next) => {
                self.compared += usize::from(!next.is_empty());
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

    fn report(&mut self) -> Option<String> {
        let reference = self.reference.as_ref()?;
        let mut text = match (self.compared, reference.len()) {
            (0, 0) => "validate: nothing was compared".to_owned(),
            (passes, functions) => {
                let (passes, functions) =
                    (count_of(passes, "pass"), count_of(functions, "function"));
                format!("validate: {passes} compared, {functions} at the end")
            }
        };
        for (function, why) in reference.notes() {
            text.push_str(&format!("\nvalidate: @{function}: {why}"));
        }
        Some(text)
    }
}
