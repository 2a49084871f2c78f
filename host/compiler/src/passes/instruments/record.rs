//! Remembers modules between passes.

use std::sync::{Arc, Mutex, PoisonError};

use crate::diagnostics::Diagnostic;
use crate::ir::Module;
use crate::passes::{Instrument, StepInfo, StepOutcome};

/// A module between two passes.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The number of the step in the plan: the pass, or the group that it is run in.
    pub step: usize,
    /// Its name.
    pub pass: String,
    /// The module.
    pub module: Module,
}

/// Remembers the module before the pass that ran last, and those that passes made of it. Modules share what is
/// the same in them. A clone sees the same.
#[derive(Clone, Default)]
pub struct Record(Arc<Mutex<Snapshots>>);

#[derive(Default)]
struct Snapshots {
    before: Option<Snapshot>,
    after: Vec<Snapshot>,
    keeps_all: bool,
}

impl Record {
    /// One that remembers what every pass made that changed something.
    pub fn of_all() -> Self {
        let snapshots = Snapshots { keeps_all: true, ..Snapshots::default() };
        Self(Arc::new(Mutex::new(snapshots)))
    }

    /// The module before the last pass.
    pub fn before(&self) -> Option<Snapshot> {
        self.lock().before.clone()
    }

    /// What the passes made, in order.
    pub fn after(&self) -> Vec<Snapshot> {
        self.lock().after.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Snapshots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Instrument for Record {
    fn before(&mut self, info: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        let mut snapshots = self.lock();
        // Passes that are run in one go have one module before them.
        let is_begun = snapshots
            .before
            .as_ref()
            .is_some_and(|before| before.step == info.unit && before.module.is_identical(module));
        if !is_begun && !info.is_group() {
            let (pass, module) = (info.step.name.clone(), module.clone());
            snapshots.before = Some(Snapshot { step: info.unit, pass, module });
        }
        Ok(())
    }

    fn after(
        &mut self,
        info: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        if let StepOutcome::Ran { before, after, .. } = outcome
            && !info.is_group()
            && !after.is_identical(before)
        {
            let mut snapshots = self.lock();
            if snapshots.keeps_all {
                let (pass, module) = (info.step.name.clone(), after.clone());
                snapshots.after.push(Snapshot { step: info.number, pass, module });
            }
        }
        Ok(())
    }
}
