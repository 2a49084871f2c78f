//! The context of a run of the pass manager, and the instruments around each pass.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tenon_plugin_api::ir::{Attrs, Symbol};

use super::plan::PassStep;
use crate::border::Report;
use crate::diagnostics::Diagnostic;
use crate::ir::Module;

/// How passes are run: an explicit value that may be sent to threads.
pub struct PassContext {
    /// Passes of a higher level do not run.
    pub opt_level: u8,
    /// Passes that do not run, by full name; this wins over everything.
    pub disabled: Vec<String>,
    /// Passes that run whatever their level, by full name.
    pub required: Vec<String>,
    /// The target's description, as passes read it.
    pub target: Attrs,
    /// Set to make the run stop.
    pub cancelled: Arc<AtomicBool>,
    /// What watches, in order.
    pub instruments: Vec<Box<dyn Instrument>>,
    /// What the passes reported, with their names.
    pub reports: Vec<(String, Report)>,
}

impl Default for PassContext {
    fn default() -> Self {
        Self {
            opt_level: 2,
            disabled: Vec::new(),
            required: Vec::new(),
            target: Attrs::NONE,
            cancelled: Arc::default(),
            instruments: Vec::new(),
            reports: Vec::new(),
        }
    }
}

impl PassContext {
    /// Whether a pass runs: disabled ones never, required ones always, others by level.
    pub fn is_enabled(&self, name: &str, opt_level: u8) -> bool {
        let named = |list: &[String]| list.iter().any(|other| other == name);
        !named(&self.disabled) && (named(&self.required) || self.opt_level >= opt_level)
    }
}

/// A step as instruments see it.
#[derive(Clone, Copy)]
pub struct StepInfo<'a> {
    /// The pass.
    pub step: &'a PassStep,
    /// Its number in the plan, from 0.
    pub number: usize,
    /// Number of steps in the plan.
    pub total: usize,
}

/// How a step ended.
#[derive(Clone, Copy)]
pub enum StepOutcome<'a> {
    /// It ran.
    Ran {
        /// The module before it.
        before: &'a Module,
        /// The module after it.
        after: &'a Module,
        /// Wall time of the pass alone.
        wall: Duration,
        /// How long it took on each function, when an instrument asks for that.
        functions: &'a [FunctionTime],
    },
    /// It was skipped: its level, the lists, or what it establishes still holds.
    Skipped(&'static str),
    /// It failed, and the module is as it was.
    Failed,
}

/// How long a pass took on one function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionTime {
    /// The function.
    pub name: Symbol,
    /// When it began.
    pub start: Instant,
    /// How long it took.
    pub wall: Duration,
    /// The thread, counted from 0.
    pub thread: usize,
}

/// Watches the passes of a run, or stops it.
///
/// A method that fails stops the run with its diagnostic, but one that is called while the run ends anyway: the
/// error of a pass comes first. Instruments are asked in their order, and all of them: one that refuses a pass
/// does not keep the others from being asked.
pub trait Instrument: Send {
    /// Before the first pass. When it fails, those that were entered before are exited, the last first.
    fn enter(&mut self, module: &Module) -> Result<(), Box<Diagnostic>> {
        let _ = module;
        Ok(())
    }

    /// Whether a pass may run. Not asked for passes that the context requires.
    fn should_run(&mut self, step: StepInfo<'_>, module: &Module) -> Result<bool, Box<Diagnostic>> {
        let _ = (step, module);
        Ok(true)
    }

    /// Before a pass runs.
    fn before(&mut self, step: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        let _ = (step, module);
        Ok(())
    }

    /// After a step, however it ended.
    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let _ = (step, outcome);
        Ok(())
    }

    /// After the run, however it ended, if it was entered. All are called, whatever the others do.
    fn exit(&mut self) -> Result<(), Box<Diagnostic>> {
        Ok(())
    }

    /// What it has to say once the run is over.
    fn report(&mut self) -> Option<String> {
        None
    }

    /// Whether passes are to be timed on each function.
    fn times_functions(&self) -> bool {
        false
    }
}
