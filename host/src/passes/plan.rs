//! Plans: which passes run, in which order, and why; settled before anything runs.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::options::{self, Given, StepOption};
use super::pipeline::{Element, OptionSpec, PassSpec, Pipeline, PipelineError};
use super::placement::{self, Placed};
use crate::diagnostics::{Diagnostic, Source};
use crate::ir::PHASES;
use crate::registry::{LookupError, PassId, PipelineContent, Place, Registry, Requirement, Set};
use crate::suggest::nearest;

/// Steps in order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Passes that the registry lists for a phase and disables.
    pub left_out: Vec<LeftOut>,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// The module enters a phase.
    Phase(String),
    /// A pass runs.
    Pass(PassStep),
}

/// A pass with its options.
#[derive(Clone, Debug)]
pub struct PassStep {
    /// The pass.
    pub id: PassId,
    /// Its full name.
    pub name: String,
    /// All of its options, in the order of its manifest.
    pub options: Vec<StepOption>,
    /// Why it is there.
    pub reason: Reason,
}

/// Why a pass is in a plan.
#[derive(Clone, Debug)]
pub enum Reason {
    /// The pipeline names it.
    Named(Place),
    /// The registry's list of a phase names it.
    Listed(Place),
    /// The registry enables it, and its manifest says where it belongs.
    Placed {
        /// Where it is enabled.
        enabled: Place,
        /// What it was put after or before, if anything.
        beside: String,
    },
    /// Another pass requires it. It is skipped while what it established still holds.
    Required {
        /// The pass that requires it.
        by: String,
    },
}

/// A pass that is listed and disabled.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Its full name.
    pub name: String,
    /// Where it is listed.
    pub listed: Place,
    /// Where it is disabled.
    pub disabled: Place,
}

/// Why there is no plan. All of it is for whoever wrote the pipeline or the registry to mend.
#[derive(Debug)]
pub struct PlanError(Box<Diagnostic>);

impl PlanError {
    /// The error as a person reads it, with the place that it is about.
    pub fn to_diagnostic(&self) -> Diagnostic {
        (*self.0).clone()
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for PlanError {}

impl From<Diagnostic> for PlanError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(Box::new(diagnostic))
    }
}

impl From<Box<Diagnostic>> for PlanError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self(diagnostic)
    }
}

/// Makes the plan of a pipeline: a name of the registry's, or a textual pipeline.
pub fn plan(registry: &Registry, pipeline: &str) -> Result<Plan, PlanError> {
    let mut planner = Planner { registry, plan: Plan::default(), placed: None };
    match registry.config().pipelines.get(pipeline.trim()).map(|config| &config.content) {
        Some(PipelineContent::Phases(phases)) => {
            for phase in phases {
                planner.phase(&phase.value, &phase.place)?;
            }
        }
        Some(PipelineContent::Passes(passes)) => {
            for text in passes {
                planner.elements(&Text::of_file(text))?;
            }
        }
        None => planner.elements(&Text::of_argument(pipeline))?,
    }
    Ok(planner.plan)
}

/// The options of a pass when no pipeline sets any.
pub fn configured_options(registry: &Registry, id: PassId) -> Result<Vec<StepOption>, PlanError> {
    settle_options(registry, id, Vec::new())
}

/// The options of a pass: what the registry's files set, and above that what a pipeline gives.
fn settle_options(
    registry: &Registry,
    id: PassId,
    given: Vec<Given>,
) -> Result<Vec<StepOption>, PlanError> {
    let config = registry.config_of(id);
    let configured = config.iter().flat_map(|config| &config.options).map(|(name, set)| Given {
        name: Set { value: name.clone(), place: set.place.clone() },
        value: set.clone(),
    });
    Ok(options::settle(registry.record(id), configured.chain(given))?)
}

/// A pipeline's text, and where it stands.
#[derive(Clone)]
struct Text<'a> {
    text: &'a str,
    origin: Origin<'a>,
}

#[derive(Clone)]
enum Origin<'a> {
    File(&'a Place),
    Argument(Arc<Source>),
}

impl<'a> Text<'a> {
    fn of_file(set: &'a Set<String>) -> Self {
        Self { text: &set.value, origin: Origin::File(&set.place) }
    }

    fn of_argument(text: &'a str) -> Self {
        Self { text, origin: Origin::Argument(Source::new("the pipeline", text)) }
    }

    fn place(&self, at: &Range<usize>) -> Place {
        match &self.origin {
            Origin::File(place) => place.within(self.text, at.clone()),
            Origin::Argument(source) => Place::in_pipeline(source, at.clone()),
        }
    }

    /// The options of a pass.
    fn given(&self, spec: &PassSpec) -> Vec<Given> {
        let given = |option: &OptionSpec| Given {
            name: Set { value: option.name.text.clone(), place: self.place(&option.name.at) },
            value: Set { value: option.value.clone(), place: self.place(&option.at) },
        };
        spec.options.iter().map(given).collect()
    }

    fn parse(&self) -> Result<Pipeline, PlanError> {
        Pipeline::parse(self.text).map_err(|PipelineError { at, message, .. }| {
            let message = format!("the pipeline does not read well: {message}");
            self.place(&(at..self.text.len().min(at + 1))).error(message, "").into()
        })
    }
}

struct Planner<'a> {
    registry: &'a Registry,
    plan: Plan,
    /// The passes that find their own place, by their phase; found when the first phase is planned.
    placed: Option<HashMap<String, Vec<(PassId, Place)>>>,
}

impl<'a> Planner<'a> {
    fn elements(&mut self, text: &Text<'_>) -> Result<(), PlanError> {
        for element in &text.parse()?.0 {
            match element {
                Element::Pass(spec) => {
                    let place = text.place(&spec.name.at);
                    let id = self.find(&spec.name.text, &place)?;
                    self.pass(id, text.given(spec), &place, Reason::Named(place.clone()))?;
                }
                Element::Phase(phase) => self.phase(&phase.text, &text.place(&phase.at))?,
            }
        }
        Ok(())
    }

    /// The passes of a phase: the registry's list, with the enabled passes that find their own place.
    fn phase(&mut self, phase: &str, place: &Place) -> Result<(), PlanError> {
        if !PHASES.contains(&phase) {
            let error = place.error(format!("there is no phase `{phase}`"), "");
            return Err(near_phase(error, phase).into());
        }
        self.plan.steps.push(Step::Phase(phase.to_owned()));
        let (mut listed, mut given) = (Vec::new(), Vec::new());
        for (spec, text, place) in self.listed(phase)? {
            let id = self.find(&spec.name.text, &place)?;
            match self.registry.enabled_by(id).filter(|set| !set.value) {
                Some(set) => self.plan.left_out.push(LeftOut {
                    name: self.registry.record(id).name.clone(),
                    listed: place,
                    disabled: set.place.clone(),
                }),
                None => {
                    listed.push((id, place));
                    given.push(text.given(&spec));
                }
            }
        }
        let all_placed = match self.placed.take() {
            Some(placed) => placed,
            None => self.enabled_elsewhere()?,
        };
        let placed = all_placed.get(phase).map_or(&[][..], Vec::as_slice);
        let phase =
            placement::Phase { registry: self.registry, name: phase, listed: &listed, placed };
        for pass in phase.order()? {
            match pass {
                Placed::Listed(number) => {
                    let (id, place) = &listed[number];
                    let given = std::mem::take(&mut given[number]);
                    self.pass(*id, given, place, Reason::Listed(place.clone()))?;
                }
                Placed::Found(number, beside) => {
                    let (id, enabled) = &placed[number];
                    let reason = Reason::Placed { enabled: enabled.clone(), beside };
                    self.pass(*id, Vec::new(), enabled, reason)?;
                }
            }
        }
        self.placed = Some(all_placed);
        Ok(())
    }

    /// What the registry lists for a phase.
    fn listed(&self, phase: &str) -> Result<Vec<(PassSpec, Text<'a>, Place)>, PlanError> {
        let mut listed = Vec::new();
        for text in self.registry.config().phases.get(phase).into_iter().flatten() {
            let text = Text::of_file(text);
            for element in text.parse()?.0 {
                match element {
                    Element::Pass(spec) => {
                        let place = text.place(&spec.name.at);
                        listed.push((spec, text.clone(), place));
                    }
                    Element::Phase(inner) => {
                        let place = text.place(&inner.at);
                        return Err(place.error("a phase lists passes, and no phases", "").into());
                    }
                }
            }
        }
        Ok(listed)
    }

    /// The passes that the registry enables by name and lists nowhere, by their phase.
    fn enabled_elsewhere(&self) -> Result<HashMap<String, Vec<(PassId, Place)>>, PlanError> {
        let mut in_a_list: HashSet<PassId> = HashSet::new();
        for phase in self.registry.config().phases.keys() {
            let listed = self.listed(phase)?;
            in_a_list.extend(
                listed.iter().filter_map(|(spec, ..)| self.registry.find(&spec.name.text).ok()),
            );
        }
        let mut placed: HashMap<String, Vec<(PassId, Place)>> = HashMap::new();
        for (name, config) in &self.registry.config().passes {
            let Some(enabled) = config.enabled.as_ref().filter(|set| set.value) else { continue };
            let id = self.find(name, &config.place)?;
            let record = self.registry.record(id);
            if record.name != *name {
                let message = format!("`{name}` is not the full name of a pass");
                let help = format!("write [passes.\"{}\"]", record.name);
                return Err(config.place.error(message, "").help(help).into());
            }
            if record.phase.is_empty() || in_a_list.contains(&id) {
                continue;
            }
            if !PHASES.contains(&record.phase.as_str()) {
                let message = format!(
                    "`{name}` cannot be placed: {} says it belongs to phase `{}`, and there is none",
                    self.registry.plugin_of(id).path.display(),
                    record.phase
                );
                let error = enabled.place.error(message, "enabled here");
                return Err(near_phase(error, &record.phase).into());
            }
            placed.entry(record.phase.clone()).or_default().push((id, enabled.place.clone()));
        }
        Ok(placed)
    }

    fn find(&self, name: &str, place: &Place) -> Result<PassId, PlanError> {
        self.registry.find(name).map_err(|error| {
            let diagnostic = error.explain(place.error(error.to_string(), ""));
            let pipelines = self.registry.config().pipelines.keys().map(String::as_str);
            match nearest(name, pipelines) {
                Some(near) if matches!(error, LookupError::Unknown { nearest: None, .. }) => {
                    diagnostic.help(format!("did you mean the pipeline `{near}`?"))
                }
                _ => diagnostic,
            }
            .into()
        })
    }

    /// Adds a pass behind everything it requires. An explicit stack: a chain of requirements may be as
    /// long as somebody makes it.
    fn pass(
        &mut self,
        id: PassId,
        given: Vec<Given>,
        place: &Place,
        reason: Reason,
    ) -> Result<(), PlanError> {
        enum Work {
            Enter(PassId, Vec<Given>, Reason),
            Leave(PassId, Vec<Given>, Reason),
        }
        let mut open = Chain { registry: self.registry, open: Vec::new(), place };
        let mut state: HashMap<PassId, bool> = HashMap::new();
        let mut work = vec![Work::Enter(id, given, reason)];
        while let Some(item) = work.pop() {
            match item {
                Work::Enter(id, given, reason) => {
                    match state.get(&id) {
                        Some(true) => continue,
                        Some(false) => return Err(open.ring(id).into()),
                        None => {}
                    }
                    if let Some(set) = self.registry.enabled_by(id).filter(|set| !set.value) {
                        return Err(open.disabled(id, &set.place).into());
                    }
                    state.insert(id, false);
                    open.open.push(id);
                    let mut required = Vec::new();
                    for requirement in &self.registry.record(id).requires {
                        let other = open.require(requirement)?;
                        let by = self.registry.record(id).name.clone();
                        required.push(Work::Enter(other, Vec::new(), Reason::Required { by }));
                    }
                    work.push(Work::Leave(id, given, reason));
                    work.extend(required.into_iter().rev());
                }
                Work::Leave(id, given, reason) => {
                    open.open.pop();
                    state.insert(id, true);
                    self.step(id, given, reason)?;
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, id: PassId, given: Vec<Given>, reason: Reason) -> Result<(), PlanError> {
        let options = settle_options(self.registry, id, given)?;
        let name = self.registry.record(id).name.clone();
        self.plan.steps.push(Step::Pass(PassStep { id, name, options, reason }));
        Ok(())
    }
}

/// The way from what a pipeline names to a pass that is required.
struct Chain<'a> {
    registry: &'a Registry,
    /// The passes on the way, each required by the one before it.
    open: Vec<PassId>,
    /// The place of the first one.
    place: &'a Place,
}

impl Chain<'_> {
    /// The pass that the last one requires.
    fn require(&self, requirement: &Requirement) -> Result<PassId, Box<Diagnostic>> {
        let id = self.registry.find(&requirement.name).map_err(|error| {
            self.explain(error.explain(self.place.error(error.to_string(), "")))
        })?;
        let plugin = &self.registry.plugin_of(id).manifest.plugin;
        match &requirement.version {
            Some(range) if !range.matches(&plugin.version) => {
                let by = self.open.last().map_or("", |&by| &self.registry.record(by).name);
                let message = format!(
                    "`{by}` requires `{}` {range}, and {} is {}",
                    requirement.name, plugin.id, plugin.version
                );
                let file = self.registry.plugin_of(id).path.display();
                let error = self.place.error(message, "").note(format!("{} is {file}", plugin.id));
                let help = format!("install a version {range} of {}", plugin.id);
                Err(self.explain(error).help(help).into())
            }
            _ => Ok(id),
        }
    }

    /// The error for a pass that is on the way already.
    fn ring(&self, id: PassId) -> Diagnostic {
        let start = self.open.iter().position(|&other| other == id).unwrap_or(0);
        let ring = self.open[start..].iter().chain([&id]);
        let names: Vec<&str> = ring.map(|&id| self.registry.record(id).name.as_str()).collect();
        let message = format!("passes require each other: {}", names.join(" requires "));
        let error = self.place.error(message, "");
        self.open[start..].iter().fold(error, |error, &id| error.note(self.said_by(id)))
    }

    fn disabled(&self, id: PassId, by: &Place) -> Diagnostic {
        let message = format!("`{}` is disabled", self.registry.record(id).name);
        let error = by.error(message, "disabled here");
        match self.open.is_empty() {
            true => error.note(format!("it is named in {}", self.place)),
            false => self.explain(error),
        }
    }

    /// Adds who requires what an error is about.
    fn explain(&self, error: Diagnostic) -> Diagnostic {
        self.open
            .iter()
            .rev()
            .fold(error, |error, &id| error.note(format!("it is required by {}", self.said_by(id))))
    }

    fn said_by(&self, id: PassId) -> String {
        let entry = self.registry.plugin_of(id);
        let plugin = &entry.manifest.plugin;
        let name = &self.registry.record(id).name;
        format!("`{name}` of {} {} ({})", plugin.id, plugin.version, entry.path.display())
    }
}

/// Adds the phase that was meant to an error about one that is none.
fn near_phase(error: Diagnostic, name: &str) -> Diagnostic {
    match nearest(name, PHASES.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.note(format!("the phases are {}", PHASES.join(", "))),
    }
}

/// As a textual pipeline that gives the same plan again.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passes = self.steps.iter().filter_map(|step| match step {
            Step::Phase(_) => None,
            Step::Pass(pass) => Some(pass),
        });
        for (number, pass) in passes.enumerate() {
            f.write_str(if number > 0 { ", " } else { "" })?;
            f.write_str(&pass.name)?;
            let set = pass.options.iter().filter(|option| option.set_by.is_some());
            let set: Vec<String> =
                set.map(|option| format!("{}={}", option.name, option.value)).collect();
            if !set.is_empty() {
                write!(f, "{{{}}}", set.join(", "))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Named(place) => write!(f, "named in {place}"),
            Reason::Listed(place) => write!(f, "listed in {place}"),
            Reason::Placed { enabled, beside } if beside.is_empty() => {
                write!(f, "enabled in {enabled}")
            }
            Reason::Placed { enabled, beside } => write!(f, "enabled in {enabled}; {beside}"),
            Reason::Required { by } => write!(f, "required by {by}, unless it still holds"),
        }
    }
}
