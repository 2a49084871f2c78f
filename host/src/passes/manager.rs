//! The pass manager: runs a plan over a module.

use std::mem;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tenon_plugin_api::ir::Context;

use super::context::PassContext;
use super::error::PassError;
use super::execute::{self, Ran};
use super::facts::Facts;
use super::instrument::{StepInfo, StepOutcome};
use super::lists::Lists;
use super::pass::GroupKind;
use super::plan::{GroupStep, PassStep, Plan, Reason, Step};
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
    let lists = Lists::new(registry, plan, cx);
    let loaded = load_all(registry, plan, &lists, cx)?;
    let (module, facts, open) = (module.clone(), Facts::default(), Vec::new());
    let mut manager = Manager { registry, plan, lists, loaded, cx, module, facts, open };
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
    lists: Lists,
    /// The plugin's pass of each step that needs one.
    pub(super) loaded: Vec<Option<LoadedPass>>,
    pub(super) cx: &'a mut PassContext,
    pub(super) module: Module,
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
                    let cx = self.module.cx();
                    self.module.attrs = cx.with_attr(self.module.attrs, "phase", (&**phase).into());
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
        Ok(())
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
        for (number, Ran { after, wall, functions }) in chosen.into_iter().zip(ran) {
            let before = mem::replace(&mut self.module, after.clone());
            let functions = &functions;
            let outcome = StepOutcome::Ran { before: &before, after: &after, wall, functions };
            self.notify(number, outcome)?;
            let has_changed = !after.is_identical(&before);
            self.facts.ran(self.registry, &self.step(number).pass, has_changed);
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
        if !is_on(self.plan, &self.lists, self.cx, step) {
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
        if self.lists.is_required(info.step) {
            return Ok(false);
        }
        let mut is_refused = false;
        for instrument in &mut self.cx.instruments {
            let may_run = instrument.should_run(info, &self.module);
            is_refused |= !may_run.map_err(|error| stopped(info, error))?;
        }
        if let (true, Reason::Required { by, .. }) = (is_refused, &info.step.reason) {
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

/// Whether the context turns a step on. What is called, or a part of a composite, is; what is required is where
/// that is for which it is done.
fn is_on(plan: &Plan, lists: &Lists, cx: &PassContext, step: &PassStep) -> bool {
    match &step.reason {
        Reason::Called | Reason::Pinned { .. } => true,
        Reason::Required { root, .. } => is_on(plan, lists, cx, plan.step(*root)),
        _ => lists.is_enabled(cx, step),
    }
}

/// Opens the plugins of the passes that the context turns on, and of those that these require.
fn load_all(
    registry: &Registry,
    plan: &Plan,
    lists: &Lists,
    cx: &PassContext,
) -> Result<Vec<Option<LoadedPass>>, PassError> {
    let load = |step: &Step| {
        let Step::Pass(step) = step else { return Ok(None) };
        if !is_on(plan, lists, cx, step) {
            return Ok(None);
        }
        if let Reason::Required { by, .. } = &step.reason
            && lists.is_disabled(step)
        {
            return Err(PassError::Disabled { pass: step.name.clone(), by: by.clone() });
        }
        match step.pass.id() {
            None => Ok(None),
            Some(id) => registry
                .load(id)
                .map(Some)
                .map_err(|error| PassError::Load { pass: step.name.clone(), error }),
        }
    };
    plan.steps.iter().map(load).collect()
}
