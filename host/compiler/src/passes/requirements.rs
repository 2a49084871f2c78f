//! What passes require: behind each other, as deep as it goes, before anything runs.

use std::collections::{HashMap, HashSet};

use super::options::Given;
use super::own::OwnPasses;
use super::pass::{Body, Pass, Required};
use super::pipeline::Element;
use super::plan::{LeftOut, PassStep, PlanError, Reason, Step};
use super::planner::{Planner, Text};
use crate::diagnostics::Diagnostic;
use crate::registry::{PassId, Place, Registry, Requirement};

/// Plans a pass behind everything it requires. One that may be left out is, where something that it requires is
/// disabled.
pub(super) fn plan(
    planner: &mut Planner<'_>,
    pass: Pass,
    place: &Place,
    reason: Reason,
) -> Result<(), PlanError> {
    let first = planner.plan.steps.len();
    match plan_before(planner, &pass, place) {
        Ok(()) => planner.step(pass, place, reason),
        Err(Unmet::Disabled { chain, disabled, .. }) if reason.may_be_left_out(pass.level()) => {
            planner.plan.steps.truncate(first);
            let (name, listed) = (pass.name().to_owned(), place.clone());
            planner.plan.left_out.push(LeftOut { name, chain, listed, disabled });
            Ok(())
        }
        Err(unmet) => Err(unmet.into()),
    }
}

/// Why what a pass requires cannot be planned.
pub(super) enum Unmet {
    /// A pass is disabled, which this chain of them requires.
    Disabled {
        /// The pass that was to be planned first, the disabled one last.
        chain: Vec<String>,
        /// Where it is disabled.
        disabled: Place,
        /// The same for a person.
        error: PlanError,
    },
    /// Something else.
    Other(PlanError),
}

impl From<Unmet> for PlanError {
    fn from(unmet: Unmet) -> Self {
        match unmet {
            Unmet::Disabled { error, .. } | Unmet::Other(error) => error,
        }
    }
}

impl From<PlanError> for Unmet {
    fn from(error: PlanError) -> Self {
        Unmet::Other(error)
    }
}

impl From<Diagnostic> for Unmet {
    fn from(error: Diagnostic) -> Self {
        Unmet::Other(error.into())
    }
}

impl From<Box<Diagnostic>> for Unmet {
    fn from(error: Box<Diagnostic>) -> Self {
        Unmet::Other(error.into())
    }
}

/// Plans everything that a pass requires. An explicit stack: a chain of requirements may be as long as somebody
/// makes it.
pub(super) fn plan_before(
    planner: &mut Planner<'_>,
    root: &Pass,
    place: &Place,
) -> Result<(), Unmet> {
    enum Work {
        Enter(Pass, Option<Reason>),
        Leave(Pass, Option<Reason>),
    }
    let (registry, own) = (planner.registry, planner.own);
    let first = planner.plan.steps.len();
    let mut open = Chain { registry, own, open: Vec::new(), place };
    // A pass that needs itself goes round, with whatever options.
    let mut on_the_way: HashSet<PassId> = HashSet::new();
    // Whether a pass is through, or on the way.
    let mut state: HashMap<Key, bool> = HashMap::new();
    let mut work = vec![Work::Enter(root.clone(), None)];
    while let Some(item) = work.pop() {
        match item {
            Work::Enter(pass, reason) => {
                if pass.id().is_some_and(|id| on_the_way.contains(&id)) {
                    return Err(open.ring(&pass).into());
                }
                match state.get(&key(&pass)) {
                    Some(true) => continue,
                    Some(false) => return Err(open.ring(&pass).into()),
                    None => {}
                }
                if let Some(set) = pass.id().and_then(|id| registry.enabled_by(id))
                    && !set.value
                {
                    let chain = open.open.iter().chain([&pass]);
                    return Err(Unmet::Disabled {
                        chain: chain.map(|pass| pass.name().to_owned()).collect(),
                        disabled: set.place.clone(),
                        error: open.disabled(&pass, &set.place).into(),
                    });
                }
                state.insert(key(&pass), false);
                on_the_way.extend(pass.id());
                open.open.push(pass.clone());
                let required: Vec<Work> = open
                    .required()?
                    .into_iter()
                    .map(|other| {
                        let by = pass.name().to_owned();
                        Work::Enter(other, Some(Reason::Required { by, root: 0 }))
                    })
                    .collect();
                work.push(Work::Leave(pass, reason));
                work.extend(required.into_iter().rev());
            }
            Work::Leave(pass, reason) => {
                open.open.pop();
                state.insert(key(&pass), true);
                if let Some(id) = pass.id() {
                    on_the_way.remove(&id);
                }
                if let Some(reason) = reason {
                    planner.step(pass, place, reason)?;
                }
            }
        }
    }
    // What it is done for comes next.
    let next = planner.plan.steps.len();
    for step in &mut planner.plan.steps[first..] {
        if let Step::Pass(PassStep { reason: Reason::Required { root, .. }, .. }) = step {
            *root = next;
        }
    }
    Ok(())
}

/// What tells passes apart.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    /// With the options that it is given.
    Plugin(PassId, String),
    Own(usize),
}

fn key(pass: &Pass) -> Key {
    let plugin = pass.id().map(|id| Key::Plugin(id, pass.given_text()));
    plugin.unwrap_or_else(|| Key::Own(pass.address()))
}

/// Whether both are one pass, with whatever options.
fn is_same(a: &Pass, b: &Pass) -> bool {
    a.id().is_some() && a.id() == b.id() || key(a) == key(b)
}

/// The way from what a pipeline names to a pass that is required.
struct Chain<'a> {
    registry: &'a Registry,
    own: &'a OwnPasses,
    /// The passes on the way, each required by the one before it.
    open: Vec<Pass>,
    /// The place of the first one.
    place: &'a Place,
}

impl Chain<'_> {
    /// What the last pass requires.
    fn required(&self) -> Result<Vec<Pass>, Box<Diagnostic>> {
        let pass = self.open.last().expect("a pass is on the way");
        if let Body::Plugin { id, .. } = pass.body() {
            let requires = &self.registry.record(*id).requires;
            return requires.iter().map(|requirement| self.plugin(requirement)).collect();
        }
        let one = |required: &Required| match required {
            Required::Name(name) => match self.own.find(name) {
                Some(pass) => self.alone(pass),
                None => {
                    let (name, options) = (name.clone(), String::new());
                    self.plugin(&Requirement { name, options, version: None })
                }
            },
            Required::Value(pass) => self.alone(pass),
        };
        pass.required().iter().map(one).collect()
    }

    /// A pass as a value, which must be no group.
    fn alone(&self, pass: &Pass) -> Result<Pass, Box<Diagnostic>> {
        if pass.group_kind().is_some() {
            let message = format!("a requirement is one pass, and `{}` is a group", pass.name());
            return Err(Box::new(self.explain(self.place.error(message, ""))));
        }
        Ok(pass.clone())
    }

    /// The pass that the last one requires.
    fn plugin(&self, requirement: &Requirement) -> Result<Pass, Box<Diagnostic>> {
        let id = self.registry.find(&requirement.name).map_err(|error| {
            self.explain(error.explain(self.place.error(error.to_string(), "")))
        })?;
        let plugin = &self.registry.plugin_of(id).manifest.plugin;
        match &requirement.version {
            Some(range) if !range.matches(&plugin.version) => {
                let by = self.open.last().map_or("", |by| by.name());
                let message = format!(
                    "`{by}` requires `{}` {range}, and {} is {}",
                    requirement.name, plugin.id, plugin.version
                );
                let file = self.registry.plugin_of(id).path.display();
                let error = self.place.error(message, "").note(format!("{} is {file}", plugin.id));
                let help = format!("install a version {range} of {}", plugin.id);
                Err(self.explain(error).help(help).into())
            }
            _ => {
                let record = self.registry.record(id);
                let given = self.given(requirement)?;
                Ok(Pass::plugin(record, id, given))
            }
        }
    }

    /// The options with which the last pass requires one.
    fn given(&self, requirement: &Requirement) -> Result<Vec<Given>, Box<Diagnostic>> {
        if requirement.options.is_empty() {
            return Ok(Vec::new());
        }
        let by = self.open.last().map_or("", Pass::name);
        let text = format!("{}{}", requirement.name, requirement.options);
        let text = Text::called(format!("what `{by}` requires"), &text);
        let pipeline = text.parse().map_err(|error| self.explain(error.to_diagnostic()))?;
        match pipeline.0.as_slice() {
            [Element::Pass(spec)] => Ok(text.given(&spec.options)),
            _ => {
                let message = format!("`{by}` requires `{requirement}`, which is not one pass");
                Err(self.explain(self.place.error(message, "")).into())
            }
        }
    }

    /// The error for a pass that is on the way already.
    fn ring(&self, pass: &Pass) -> Diagnostic {
        let start = self.open.iter().position(|other| is_same(other, pass)).unwrap_or(0);
        let ring = self.open[start..].iter().chain([pass]);
        let names: Vec<&str> = ring.map(Pass::name).collect();
        let message = format!("passes require each other: {}", names.join(" requires "));
        let error = self.place.error(message, "");
        self.open[start..].iter().fold(error, |error, pass| error.note(self.said_by(pass)))
    }

    fn disabled(&self, pass: &Pass, by: &Place) -> Diagnostic {
        let error = by.error(format!("`{}` is disabled", pass.name()), "disabled here");
        match self.open.is_empty() {
            true => error.note(format!("it is named in {}", self.place)),
            false => self.explain(error),
        }
    }

    /// Adds who requires what an error is about.
    fn explain(&self, error: Diagnostic) -> Diagnostic {
        self.open.iter().rev().fold(error, |error, pass| {
            error.note(format!("it is required by {}", self.said_by(pass)))
        })
    }

    fn said_by(&self, pass: &Pass) -> String {
        let Some(id) = pass.id() else { return format!("`{}`", pass.name()) };
        let entry = self.registry.plugin_of(id);
        let plugin = &entry.manifest.plugin;
        format!("`{}` of {} {} ({})", pass.name(), plugin.id, plugin.version, entry.path.display())
    }
}
