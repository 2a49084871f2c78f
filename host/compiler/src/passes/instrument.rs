//! What watches passes: the trait of instruments, and what they are told.

use std::time::{Duration, Instant};

use super::plan::PassStep;
use crate::diagnostics::Diagnostic;
use crate::ir::{Module, Symbol};

/// A step as instruments see it.
#[derive(Clone, Copy)]
pub struct StepInfo<'a> {
    /// The pass; it may be a group.
    pub step: &'a PassStep,
    /// Its number in the plan, from 0.
    pub number: usize,
    /// The number of the step that begins what is run in one go: the pass itself, or the group in which each
    /// function goes through all passes.
    pub unit: usize,
    /// Number of steps in the plan.
    pub total: usize,
}

impl StepInfo<'_> {
    /// Whether it is a group, which consists of passes that are told of as well.
    pub fn is_group(&self) -> bool {
        self.step.pass.group_kind().is_some()
    }
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
        /// Wall time of the pass alone; where several are run in one go, its share of theirs.
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
/// does not keep the others from being asked. A group is told of as its passes are; refusing it keeps all of them
/// from running. The passes of a group in which each function goes through all of them are all asked about, then
/// all are begun, and told of in order once they have run.
pub trait Instrument: Send {
    /// When the context is entered. When it fails, those that were entered before are exited, the last first.
    fn enter(&mut self) -> Result<(), Box<Diagnostic>> {
        Ok(())
    }

    /// Whether a pass may run. Not asked for passes that the context requires.
    fn should_run(&mut self, step: StepInfo<'_>, module: &Module) -> Result<bool, Box<Diagnostic>> {
        let _ = (step, module);
        Ok(true)
    }

    /// Whether no more passes are to run. The module then enters no further phase: the passes of the one that it is
    /// in may be among those that do not run.
    fn is_over(&self) -> bool {
        false
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

    /// When the context is left, however that came, if it was entered. All are called, whatever the others do.
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
