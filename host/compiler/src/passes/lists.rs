//! The lists of a context: which passes are off, and which are on whatever their level.

use rustc_hash::FxHashSet;

use super::context::PassContext;
use super::plan::{GroupStep, PassStep, Plan, Reason, Step};
use crate::border::{Report, ReportLevel};
use crate::registry::{LookupError, Registry};
use crate::suggest::nearest;

/// The names of both lists, aliases resolved.
pub(super) struct Lists {
    disabled: FxHashSet<String>,
    required: FxHashSet<String>,
}

impl Lists {
    /// A name that is nobody's is reported, with the nearest one.
    pub(super) fn new(registry: &Registry, plan: &Plan, cx: &mut PassContext) -> Self {
        let (mut disabled, mut required) = (FxHashSet::default(), FxHashSet::default());
        for (list, names, what) in [
            (&cx.disabled, &mut disabled, "turns nothing off"),
            (&cx.required, &mut required, "turns nothing on"),
        ] {
            for name in list {
                match resolve(registry, plan, name) {
                    Ok(full) => drop(names.insert(full)),
                    Err(error) => {
                        let near = match &error {
                            LookupError::Unknown { nearest: Some(near), .. } => {
                                format!("; did you mean `{near}`?")
                            }
                            _ => String::new(),
                        };
                        let text = format!("this {what}: {error}{near}");
                        let report = Report { level: ReportLevel::Warning, text };
                        cx.reports.push((name.clone(), report));
                    }
                }
            }
        }
        let lists = Self { disabled, required };
        lists.tell_of_levels(plan, cx);
        lists
    }

    /// Whether a step runs, if what it is there for does: disabled ones never, required ones always, others by
    /// level. What is called, or a part of a composite, runs whatever they say.
    pub(super) fn turns_on(&self, cx: &PassContext, step: &Step) -> bool {
        let (Step::Pass(step) | Step::Begin(GroupStep { step, .. })) = step else { return true };
        match step.reason {
            Reason::Called | Reason::Pinned { .. } | Reason::Required { .. } => true,
            Reason::Named(_)
            | Reason::Listed(_)
            | Reason::Placed { .. }
            | Reason::Member { .. } => {
                !self.is_disabled(step)
                    && (self.is_required(step) || cx.opt_level >= step.pass.level())
            }
        }
    }

    pub(super) fn is_disabled(&self, step: &PassStep) -> bool {
        self.disabled.contains(&step.name)
    }

    pub(super) fn is_required(&self, step: &PassStep) -> bool {
        self.required.contains(&step.name)
    }

    /// Who asks for a pass by name should know that it is above the level.
    fn tell_of_levels(&self, plan: &Plan, cx: &mut PassContext) {
        for step in plan.passes() {
            let is_asked_for = matches!(step.reason, Reason::Named(_) | Reason::Placed { .. });
            let is_low = step.pass.level() <= cx.opt_level;
            if is_asked_for && !is_low && !self.is_disabled(step) && !self.is_required(step) {
                let (level, limit) = (step.pass.level(), cx.opt_level);
                let text = format!("it does not run: it is of level {level}, above {limit}");
                cx.reports.push((step.name.clone(), Report { level: ReportLevel::Note, text }));
            }
        }
    }
}

/// The full name, of a pass of the plan or of the registry.
fn resolve(registry: &Registry, plan: &Plan, name: &str) -> Result<String, LookupError> {
    let names = || {
        plan.steps.iter().filter_map(|step| match step {
            Step::Pass(step) => Some(step.name.as_str()),
            Step::Begin(group) => Some(group.step.name.as_str()),
            Step::Phase(_) | Step::End(_) => None,
        })
    };
    if names().any(|other| other == name) {
        return Ok(name.to_owned());
    }
    match registry.find(name) {
        Ok(id) => Ok(registry.record(id).name.clone()),
        Err(LookupError::Unknown { name, nearest: near, searched }) => {
            let near = near.or_else(|| nearest(&name, names()).map(str::to_owned));
            Err(LookupError::Unknown { name, nearest: near, searched })
        }
        Err(error) => Err(error),
    }
}
