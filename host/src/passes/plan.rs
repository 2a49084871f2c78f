//! Plans: which passes run, in which order, and why; settled before anything runs.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use thiserror::Error;

use super::options;
use super::pipeline::{Element, OptionValue, PassSpec, Pipeline, PipelineError};
use crate::registry::{LookupError, PassId, Registry};

/// Steps in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The module enters a phase.
    Phase(String),
    /// A pass runs.
    Pass(PassStep),
}

/// A pass with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct PassStep {
    /// The pass.
    pub id: PassId,
    /// Its full name.
    pub name: String,
    /// The values of all of its options.
    pub options: BTreeMap<String, OptionValue>,
    /// Those that were set, as a pipeline writes them.
    pub given: Vec<(String, OptionValue)>,
    /// Why it is there.
    pub reason: Reason,
}

/// Why a pass is in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The pipeline names it.
    Named,
    /// The registry's list of a phase names it.
    Phase(String),
    /// The registry enables it, and its manifest says where it belongs.
    Placed {
        /// Its phase.
        phase: String,
        /// What it was put after or before, if anything.
        beside: String,
    },
    /// Another pass requires it. It is skipped while what it established still holds.
    Required {
        /// The pass that requires it.
        by: String,
    },
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The pipeline's text is wrong.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// There is no such pass, or several.
    #[error("{error}{}", needed(.chain))]
    Lookup {
        /// Why.
        error: LookupError,
        /// Who requires it, outermost first.
        chain: Vec<String>,
    },
    /// A pass that is named or required is off.
    #[error("`{name}` is disabled in {registry}{}", needed(.chain))]
    Disabled {
        /// The pass.
        name: String,
        /// The file that says so.
        registry: String,
        /// Who requires it, outermost first.
        chain: Vec<String>,
    },
    /// Passes require each other.
    #[error("passes require each other: {}", .chain.join(" requires "))]
    Cycle {
        /// The passes, the first one again at the end.
        chain: Vec<String>,
    },
    /// Wrong options.
    #[error("{0}")]
    Options(String),
    /// No phase or pipeline of that name.
    #[error("there is no {what} `{name}`; there are {known}")]
    Unknown {
        /// A phase or a pipeline.
        what: &'static str,
        /// The name.
        name: String,
        /// What exists.
        known: String,
    },
    /// `after` and `before` contradict each other.
    #[error(
        "`{pass}` cannot be placed in phase `{phase}`: it belongs after `{after}` and before \
             `{before}`, which stand in the other order"
    )]
    Placement {
        /// The pass.
        pass: String,
        /// Its phase.
        phase: String,
        /// What it must come after.
        after: String,
        /// What it must come before.
        before: String,
    },
}

fn needed(chain: &[String]) -> String {
    match chain {
        [] => String::new(),
        chain => format!("; it is required by `{}`", chain.join("`, required by `")),
    }
}

/// Makes the plan of a pipeline: a name of the registry's, or a textual pipeline.
pub fn plan(registry: &Registry, pipeline: &str) -> Result<Plan, PlanError> {
    let mut planner = Planner { registry, steps: Vec::new() };
    match registry.config().pipelines.get(pipeline.trim()) {
        Some(config) => {
            for phase in &config.phases {
                planner.phase(phase)?;
            }
            for text in &config.passes {
                planner.elements(&Pipeline::parse(text)?)?;
            }
        }
        None => planner.elements(&Pipeline::parse(pipeline)?)?,
    }
    Ok(Plan { steps: planner.steps })
}

struct Planner<'a> {
    registry: &'a Registry,
    steps: Vec<Step>,
}

impl Planner<'_> {
    fn elements(&mut self, pipeline: &Pipeline) -> Result<(), PlanError> {
        for element in &pipeline.0 {
            match element {
                Element::Pass(spec) => {
                    let id = self.find(&spec.name, &[])?;
                    self.pass(id, spec, Reason::Named)?;
                }
                Element::Phase(phase) => self.phase(phase)?,
            }
        }
        Ok(())
    }

    /// The passes of a phase: the registry's list, with the enabled passes that find their own place.
    fn phase(&mut self, phase: &str) -> Result<(), PlanError> {
        if !crate::ir::PHASES.contains(&phase) {
            return Err(PlanError::Unknown {
                what: "phase",
                name: phase.to_owned(),
                known: crate::ir::PHASES.join(", "),
            });
        }
        self.steps.push(Step::Phase(phase.to_owned()));
        let mut listed: Vec<(PassId, PassSpec, Reason)> = Vec::new();
        if let Some(config) = self.registry.config().phases.get(phase) {
            for text in &config.passes {
                for element in Pipeline::parse(text)?.0 {
                    let Element::Pass(spec) = element else { continue };
                    let by = format!("phase {phase} of {}", self.registry.config().path.display());
                    let id = self.find(&spec.name, &[by])?;
                    listed.push((id, spec, Reason::Phase(phase.to_owned())));
                }
            }
        }
        self.place(phase, &mut listed)?;
        for (id, spec, reason) in listed {
            self.pass(id, &spec, reason)?;
        }
        Ok(())
    }

    /// Puts each pass that the registry enables by name, and that no list names, where its manifest
    /// says: right after the last pass it must follow, else right before the first it must precede, else
    /// at the phase's end. Passes are placed in the order of their names.
    fn place(
        &self,
        phase: &str,
        listed: &mut Vec<(PassId, PassSpec, Reason)>,
    ) -> Result<(), PlanError> {
        for id in self.registry.passes() {
            let record = self.registry.record(id);
            let config = self.registry.config().passes.get(&record.name);
            if record.phase != phase
                || config.and_then(|config| config.enabled) != Some(true)
                || listed.iter().any(|(other, ..)| *other == id)
            {
                continue;
            }
            let positions = |names: &[String]| -> Vec<usize> {
                let ids: Vec<PassId> =
                    names.iter().filter_map(|name| self.registry.find(name).ok()).collect();
                (0..listed.len()).filter(|&at| ids.contains(&listed[at].0)).collect()
            };
            let after = positions(&record.after).into_iter().max();
            let before = positions(&record.before).into_iter().min();
            let name_at = |at: usize| self.registry.record(listed[at].0).name.clone();
            if let (Some(after), Some(before)) = (after, before)
                && after >= before
            {
                return Err(PlanError::Placement {
                    pass: record.name.clone(),
                    phase: phase.to_owned(),
                    after: name_at(after),
                    before: name_at(before),
                });
            }
            let (at, beside) = match (after, before) {
                (Some(after), _) => (after + 1, format!("after {}", name_at(after))),
                (None, Some(before)) => (before, format!("before {}", name_at(before))),
                (None, None) => (listed.len(), String::new()),
            };
            let spec = PassSpec { name: record.name.clone(), options: Vec::new() };
            listed.insert(at, (id, spec, Reason::Placed { phase: phase.to_owned(), beside }));
        }
        Ok(())
    }

    fn find(&self, name: &str, chain: &[String]) -> Result<PassId, PlanError> {
        self.registry.find(name).map_err(|error| PlanError::Lookup { error, chain: chain.to_vec() })
    }

    /// Adds a pass behind everything it requires. An explicit stack: a chain of requirements may be as
    /// long as somebody makes it.
    fn pass(&mut self, id: PassId, spec: &PassSpec, reason: Reason) -> Result<(), PlanError> {
        enum Work {
            Enter(PassId, PassSpec, Reason),
            Leave(PassId, PassSpec, Reason),
        }
        let mut open: Vec<PassId> = Vec::new();
        let mut done: HashMap<PassId, ()> = HashMap::new();
        let mut work = vec![Work::Enter(id, spec.clone(), reason)];
        while let Some(item) = work.pop() {
            match item {
                Work::Enter(id, spec, reason) => {
                    let record = self.registry.record(id);
                    let chain = || -> Vec<String> {
                        open.iter().rev().map(|&id| self.registry.record(id).name.clone()).collect()
                    };
                    if let Some(start) = open.iter().position(|&other| other == id) {
                        let mut chain: Vec<String> = open[start..]
                            .iter()
                            .map(|&id| self.registry.record(id).name.clone())
                            .collect();
                        chain.push(record.name.clone());
                        return Err(PlanError::Cycle { chain });
                    }
                    if done.contains_key(&id) {
                        continue;
                    }
                    let config = self.registry.config().passes.get(&record.name);
                    if config.and_then(|config| config.enabled) == Some(false) {
                        return Err(PlanError::Disabled {
                            name: record.name.clone(),
                            registry: self.registry.config().path.display().to_string(),
                            chain: chain(),
                        });
                    }
                    open.push(id);
                    let chain: Vec<String> = open
                        .iter()
                        .rev()
                        .map(|&id| self.registry.record(id).name.clone())
                        .collect();
                    let mut required = Vec::with_capacity(record.requires.len());
                    for name in &record.requires {
                        let spec = PassSpec { name: name.clone(), options: Vec::new() };
                        let reason = Reason::Required { by: record.name.clone() };
                        required.push(Work::Enter(self.find(name, &chain)?, spec, reason));
                    }
                    work.push(Work::Leave(id, spec, reason));
                    work.extend(required.into_iter().rev());
                }
                Work::Leave(id, spec, reason) => {
                    open.pop();
                    done.insert(id, ());
                    self.step(id, &spec, reason)?;
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, id: PassId, spec: &PassSpec, reason: Reason) -> Result<(), PlanError> {
        let record = self.registry.record(id);
        let mut given: Vec<(String, OptionValue)> = Vec::new();
        if let Some(config) = self.registry.config().passes.get(&record.name) {
            given.extend(
                config.options.iter().map(|(key, value)| (key.clone(), options::from_toml(value))),
            );
        }
        given.extend(spec.options.iter().cloned());
        let options = options::check(record, &given).map_err(PlanError::Options)?;
        self.steps.push(Step::Pass(PassStep {
            id,
            name: record.name.clone(),
            options,
            given,
            reason,
        }));
        Ok(())
    }
}

/// As a textual pipeline that gives the same plan again.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elements = self
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Phase(_) => None,
                Step::Pass(pass) => Some(Element::Pass(PassSpec {
                    name: pass.name.clone(),
                    options: pass.given.clone(),
                })),
            })
            .collect();
        write!(f, "{}", Pipeline(elements))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Named => f.write_str("named in the pipeline"),
            Reason::Phase(phase) => write!(f, "listed in phase {phase}"),
            Reason::Placed { phase, beside } if beside.is_empty() => {
                write!(f, "enabled, belongs to phase {phase}")
            }
            Reason::Placed { phase, beside } => {
                write!(f, "enabled, belongs to phase {phase}, {beside}")
            }
            Reason::Required { by } => write!(f, "required by {by}, unless it still holds"),
        }
    }
}
