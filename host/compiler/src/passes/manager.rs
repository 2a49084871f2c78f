//! The pass manager: runs a plan over a module.

use std::mem;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::choice::Choice;
use super::context::PassContext;
use super::error::PassError;
use super::execute::{self, Ran};
use super::facts::Facts;
use super::instrument::{StepInfo, StepOutcome};
use super::pass::GroupKind;
use super::plan::{GroupStep, PassStep, Plan, Reason, Step};
use super::promises::Kept;
use crate::border::{Report, ReportLevel};
use crate::diagnostics::Diagnostic;
use crate::ir::Module;
use crate::registry::{LoadedPass, Registry};

/// Runs a plan in a context of which it is the only run. Every plugin that it needs is opened before the first
/// pass runs.
pub fn run(
    registry: &Registry,
    plan: &Plan,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    cx.scope(|cx| cx.run(registry, plan, module))
}

/// Runs a plan in a context that is entered.
pub(super) fn run_entered(
    registry: &Registry,
    plan: &Plan,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    plan.check_order(registry, module)?;
    let choice = Choice::new(registry, plan, cx)?;
    let loaded = load_all(registry, plan, &choice)?;
    let (facts, open, kept) = (Facts::default(), Vec::new(), Kept::new(module));
    let module = module.clone();
    let mut manager = Manager { registry, plan, choice, loaded, cx, module, kept, facts, open };
    let result = manager.run_steps();
    if result.is_err() {
        // What began is told that it failed; an instrument's error would only hide the first one.
        while let Some(group) = manager.open.pop() {
            let _ = manager.notify(group.begin, StepOutcome::Failed);
        }
    }
    result.map(|()| manager.module)
}

/// A run of a plan.
pub(super) struct Manager<'a> {
    pub(super) registry: &'a Registry,
    pub(super) plan: &'a Plan,
    pub(super) choice: Choice,
    /// The plugin's pass of each step that needs one.
    pub(super) loaded: Vec<Option<LoadedPass>>,
    pub(super) cx: &'a mut PassContext,
    pub(super) module: Module,
    pub(super) kept: Kept,
    facts: Facts<'a>,
    /// The groups that have begun.
    open: Vec<Open>,
}

/// A group that has begun.
struct Open {
    begin: usize,
    /// The module when it began, and when its round did.
    before: Module,
    round_before: Module,
    rounds: u32,
    start: Instant,
}

impl<'a> Manager<'a> {
    fn run_steps(&mut self) -> Result<(), PassError> {
        let mut at = 0;
        while at < self.plan.steps.len() {
            at = match &self.plan.steps[at] {
                Step::Phase(phase) => {
                    self.enters(phase, at)?;
                    at + 1
                }
                Step::Pass(_) => {
                    self.run_unit(at, at..at + 1)?;
                    at + 1
                }
                Step::Begin(group) if !self.begins(at, group)? => group.end + 1,
                Step::Begin(group) if group.kind == GroupKind::Functions => {
                    self.run_unit(at, at + 1..group.end)?;
                    group.end
                }
                Step::Begin(_) => at + 1,
                Step::End(begin) if self.is_another_round() => begin + 1,
                Step::End(_) => {
                    self.ends()?;
                    at + 1
                }
            };
        }
        self.leaves()
    }

    /// Runs the steps that are run in one go, `unit` being the first: one pass, or passes that each function
    /// goes through.
    fn run_unit(&mut self, unit: usize, steps: Range<usize>) -> Result<(), PassError> {
        let mut chosen = Vec::new();
        for number in steps {
            match self.is_skipped(number, chosen.is_empty())? {
                Some(why) => self.notify(number, StepOutcome::Skipped(why))?,
                None => chosen.push(number),
            }
        }
        for &number in &chosen {
            self.before(number, unit)?;
        }
        let ran = match execute::run(self, &chosen) {
            Ok(ran) => ran,
            Err(error) => {
                for number in chosen {
                    let _ = self.notify(number, StepOutcome::Failed);
                }
                return Err(error);
            }
        };
        for (number, Ran { after, wall, functions, is_whole }) in chosen.into_iter().zip(ran) {
            let before = mem::replace(&mut self.module, after.clone());
            let functions = &functions;
            let outcome = StepOutcome::Ran { before: &before, after: &after, wall, functions };
            self.notify(number, outcome)?;
            let has_changed = !after.is_identical(&before);
            self.facts.ran(self.registry, &self.step(number).pass, has_changed, is_whole);
        }
        Ok(())
    }

    /// Why a pass is not run. What is required is skipped while it holds, where nothing of its unit runs before it.
    fn is_skipped(
        &mut self,
        number: usize,
        is_first: bool,
    ) -> Result<Option<&'static str>, PassError> {
        if self.cx.cancelled.load(Ordering::Relaxed) {
            return Err(PassError::Cancelled { pass: self.step(number).name.clone() });
        }
        let step = self.step(number);
        if !self.choice.is_on(number) {
            return Ok(Some(
                "it, or what requires it, is above the optimization level or disabled",
            ));
        }
        let is_required = matches!(step.reason, Reason::Required { .. });
        if is_required && is_first && self.facts.hold(self.registry, &step.pass) {
            return Ok(Some("it still holds"));
        }
        Ok(self.is_refused(number)?.then_some("an instrument refused it"))
    }

    /// Asks every instrument, but about passes that the context requires.
    fn is_refused(&mut self, number: usize) -> Result<bool, PassError> {
        let info = self.info(number, number);
        if self.choice.is_required(info.step) {
            return Ok(false);
        }
        let mut is_refused = false;
        for instrument in &mut self.cx.instruments {
            let may_run = instrument.should_run(info, &self.module);
            is_refused |= !may_run.map_err(|error| stopped(info, error))?;
        }
        if let (true, Reason::Required { by, .. }) = (is_refused, &info.step.reason)
            && !self.is_over()
        {
            let text = format!("an instrument refused it, though `{by}` requires it");
            let report = Report { level: ReportLevel::Warning, text };
            self.cx.reports.push((info.step.name.clone(), report));
        }
        Ok(is_refused)
    }

    fn before(&mut self, number: usize, unit: usize) -> Result<(), PassError> {
        let info = self.info(number, unit);
        for instrument in &mut self.cx.instruments {
            instrument.before(info, &self.module).map_err(|error| stopped(info, error))?;
        }
        Ok(())
    }

    fn notify(&mut self, number: usize, outcome: StepOutcome<'_>) -> Result<(), PassError> {
        let info = self.info(number, number);
        for instrument in &mut self.cx.instruments {
            instrument.after(info, outcome).map_err(|error| stopped(info, error))?;
        }
        Ok(())
    }

    /// Begins a group, unless it is off or refused.
    fn begins(&mut self, begin: usize, group: &GroupStep) -> Result<bool, PassError> {
        if let Some(why) = self.is_skipped(begin, true)? {
            self.notify(begin, StepOutcome::Skipped(why))?;
            return Ok(false);
        }
        self.before(begin, begin)?;
        let rounds = match group.kind {
            GroupKind::Fixpoint { max } => max,
            GroupKind::Sequence | GroupKind::Composite | GroupKind::Functions => 1,
        };
        let (before, start) = (self.module.clone(), Instant::now());
        self.open.push(Open { begin, round_before: before.clone(), before, rounds, start });
        Ok(true)
    }

    /// Whether the innermost group goes on: its last round changed something, and it has rounds left.
    fn is_another_round(&mut self) -> bool {
        let group = self.open.last_mut().expect("what ends has begun");
        group.rounds -= 1;
        let has_changed = !self.module.is_identical(&group.round_before);
        group.round_before = self.module.clone();
        has_changed && group.rounds > 0
    }

    fn ends(&mut self) -> Result<(), PassError> {
        let Open { begin, before, start, .. } = self.open.pop().expect("what ends has begun");
        let after = self.module.clone();
        let wall = start.elapsed();
        self.notify(
            begin,
            StepOutcome::Ran { before: &before, after: &after, wall, functions: &[] },
        )
    }

    /// The pass of a step, or the group that it begins.
    fn step(&self, number: usize) -> &'a PassStep {
        self.plan.step(number)
    }

    fn info(&self, number: usize, unit: usize) -> StepInfo<'a> {
        StepInfo { step: self.step(number), number, unit, total: self.plan.steps.len() }
    }
}

fn stopped(info: StepInfo<'_>, diagnostic: Box<Diagnostic>) -> PassError {
    PassError::Instrument { pass: info.step.name.clone(), diagnostic }
}

/// Opens the plugins of the passes that the context turns on, and of those that these require.
fn load_all(
    registry: &Registry,
    plan: &Plan,
    choice: &Choice,
) -> Result<Vec<Option<LoadedPass>>, PassError> {
    let load = |(number, step): (usize, &Step)| {
        let Step::Pass(step) = step else { return Ok(None) };
        match step.pass.id().filter(|_| choice.is_on(number)) {
            None => Ok(None),
            Some(id) => registry
                .load(id)
                .map(Some)
                .map_err(|error| PassError::Load { pass: step.name.clone(), error }),
        }
    };
    plan.steps.iter().enumerate().map(load).collect()
}
