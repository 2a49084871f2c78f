//! Which steps of a plan run, settled before any does: by the level and the lists of the context, and by what is left
//! out since something that it requires is off.

use rustc_hash::FxHashSet;

use super::context::PassContext;
use super::error::PassError;
use super::lists::Lists;
use super::plan::{GroupStep, PassStep, Plan, Reason, Step, required_by};
use crate::border::{Report, ReportLevel};
use crate::registry::Registry;

/// What a context says of the steps of a plan.
pub(super) struct Choice {
    lists: Lists,
    is_on: Vec<bool>,
    levels: Vec<u8>,
}

impl Choice {
    /// What is left out, and what a user named in vain, is reported.
    ///
    /// # Errors
    /// A disabled pass is required by one that stays.
    pub(super) fn new(
        registry: &Registry,
        plan: &Plan,
        cx: &mut PassContext,
    ) -> Result<Self, PassError> {
        let lists = Lists::new(registry, plan, cx);
        let is_on = plan.steps.iter().map(|step| lists.turns_on(cx, step)).collect();
        let mut choice = Self { lists, is_on, levels: vec![0; plan.steps.len()] };
        choice.go_into_groups(plan, cx);
        choice.leave_out(plan, cx)?;
        for left_out in plan.left_out.iter().filter(|it| it.chain.len() > 1) {
            let chain = required_by(&left_out.chain);
            let text =
                format!("it is left out: {chain}, which is disabled in {}", left_out.disabled);
            warn(cx, &left_out.name, text);
        }
        for (number, step) in plan.steps.iter().enumerate() {
            if let Step::Pass(PassStep { reason: Reason::Required { root, .. }, pass, .. }) = step {
                choice.is_on[number] = choice.is_on[*root];
                choice.levels[number] = pass.level().min(choice.levels[*root]);
            }
        }
        Ok(choice)
    }

    /// Whether a step runs, unless an instrument refuses it.
    pub(super) fn is_on(&self, number: usize) -> bool {
        self.is_on[number]
    }

    /// The lowest level of a context in which a step runs: what its groups ask for counts as well.
    pub(super) fn level(&self, number: usize) -> u8 {
        self.levels[number]
    }

    /// Whether the context requires a pass.
    pub(super) fn is_required(&self, step: &PassStep) -> bool {
        self.lists.is_required(step)
    }

    /// What is in a group runs when the group does, and at no lower level. A part of a composite has no name in the
    /// lists; who disables it is told.
    fn go_into_groups(&mut self, plan: &Plan, cx: &mut PassContext) {
        let mut open: Vec<(usize, &GroupStep)> = Vec::new();
        let mut told: FxHashSet<(&str, &str)> = FxHashSet::default();
        for (number, step) in plan.steps.iter().enumerate() {
            let (Step::Pass(pass) | Step::Begin(GroupStep { step: pass, .. })) = step else {
                continue;
            };
            while open.last().is_some_and(|(_, group)| group.end < number) {
                open.pop();
            }
            self.levels[number] = pass.pass.level();
            if let Some(&(begin, group)) = open.last() {
                self.is_on[number] &= self.is_on[begin];
                let is_part = matches!(pass.reason, Reason::Pinned { .. });
                self.levels[number] = match is_part {
                    true => self.levels[begin],
                    false => self.levels[begin].max(pass.pass.level()),
                };
                let of = &group.step.name;
                let is_in_vain = is_part && self.is_on[begin] && self.lists.is_disabled(pass);
                if is_in_vain && told.insert((&pass.name, of)) {
                    let why = format!("`{of}`, which runs as one pass: disable that");
                    warn(cx, &pass.name, format!("this does not turn it off in {why}"));
                }
            }
            if let Step::Begin(group) = step {
                open.push((number, group));
            }
        }
    }

    /// Turns off what may be left out and requires what is disabled.
    fn leave_out(&mut self, plan: &Plan, cx: &mut PassContext) -> Result<(), PassError> {
        let mut told: FxHashSet<&str> = FxHashSet::default();
        for (number, step) in plan.steps.iter().enumerate() {
            let Step::Pass(step) = step else { continue };
            let Reason::Required { by, root } = &step.reason else { continue };
            if !self.is_on[*root] || !self.lists.is_disabled(step) {
                continue;
            }
            let for_it = plan.step(*root);
            if !for_it.may_be_left_out() || self.is_required(for_it) {
                return Err(PassError::Disabled {
                    pass: step.name.clone(),
                    by: by.clone(),
                    root: Box::new(for_it.clone()),
                });
            }
            self.is_on[*root] = false;
            if told.insert(&for_it.name) {
                let chain = required_by(&chain(plan, number));
                warn(cx, &for_it.name, format!("it is left out: {chain}, which is disabled"));
            }
        }
        Ok(())
    }
}

fn warn(cx: &mut PassContext, pass: &str, text: String) {
    cx.reports.push((pass.to_owned(), Report { level: ReportLevel::Warning, text }));
}

/// The passes from the one for which a requirement is there down to this.
fn chain(plan: &Plan, number: usize) -> Vec<String> {
    let mut chain = vec![plan.step(number).name.clone()];
    let (mut at, mut wanted) = (number, &plan.step(number).reason);
    // Whoever requires a pass comes behind it.
    while let Reason::Required { by, root } = wanted {
        let by_name = |at: &usize| plan.step(*at).name == *by;
        at = (at + 1..*root).find(by_name).unwrap_or(*root);
        chain.push(plan.step(at).name.clone());
        wanted = &plan.step(at).reason;
        if at == *root {
            break;
        }
    }
    chain.reverse();
    chain
}
