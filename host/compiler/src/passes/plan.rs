//! Plans: which passes run, in which order, and why; settled before anything runs.
//!
//! A plan is a value: it prints as a pipeline's text, and reading that text gives it again. What others require
//! is not printed, since those that require it are.

use std::fmt;

use super::options::StepOption;
use super::pass::{GroupKind, Pass};
use crate::diagnostics::Diagnostic;
use crate::registry::{OptionValue, Place};

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
    /// A group begins.
    Begin(GroupStep),
    /// The group that the step of this number begins ends.
    End(usize),
}

/// The beginning of a group.
#[derive(Clone, Debug)]
pub struct GroupStep {
    /// The group as a pass, which instruments are told of.
    pub step: PassStep,
    /// How its passes are run.
    pub kind: GroupKind,
    /// The number of the step that ends it.
    pub end: usize,
}

/// A pass with its options.
#[derive(Clone, Debug)]
pub struct PassStep {
    /// The pass.
    pub pass: Pass,
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
    /// It is what was called: its level and the lists of the context are no matter.
    Called,
    /// A group of the API's holds it.
    Member {
        /// The group.
        of: String,
    },
    /// It is a part of a composite: it runs when that does, whatever its level and the lists of the context.
    Pinned {
        /// The composite.
        of: String,
    },
    /// Another pass requires it. It is skipped while what it established still holds.
    Required {
        /// The pass that requires it.
        by: String,
        /// The number of the step for which all of this is done: when that is off, this is.
        root: usize,
    },
}

/// A pass that is listed, and disabled, or requires one that is.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Its full name.
    pub name: String,
    /// It, and what it requires down to the pass that is disabled, each required by the one before.
    pub chain: Vec<String>,
    /// Where it is listed.
    pub listed: Place,
    /// Where it is disabled.
    pub disabled: Place,
}

/// `it requires B, which requires C`, of a pass and what it requires.
pub fn required_by(chain: &[String]) -> String {
    let required = chain.iter().skip(1).map(|name| format!("requires `{name}`"));
    format!("it {}", required.collect::<Vec<_>>().join(", which "))
}

impl PassStep {
    /// Whether code can be made without it, and nobody asked for it by name.
    pub(super) fn may_be_left_out(&self) -> bool {
        self.reason.may_be_left_out(self.pass.level())
    }
}

impl Reason {
    /// The same of a pass of a level that is there for this reason.
    pub(super) fn may_be_left_out(&self, level: u8) -> bool {
        level > 0 && matches!(self, Reason::Listed(_) | Reason::Placed { .. })
    }
}

/// Why there is no plan. All of it is for whoever wrote the pipeline or the registry to mend.
#[derive(Clone, Debug)]
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

impl Plan {
    /// The passes, in order.
    pub fn passes(&self) -> impl Iterator<Item = &PassStep> {
        self.steps.iter().filter_map(|step| match step {
            Step::Pass(pass) => Some(pass),
            Step::Phase(_) | Step::Begin(_) | Step::End(_) => None,
        })
    }

    /// The pass of a step, or the group that it begins.
    ///
    /// # Panics
    /// The step is another one.
    pub fn step(&self, number: usize) -> &PassStep {
        match &self.steps[number] {
            Step::Pass(step) | Step::Begin(GroupStep { step, .. }) => step,
            Step::Phase(_) | Step::End(_) => panic!("step {number} is no pass"),
        }
    }

    /// The steps from a number on, up to where a phase behind the first of them begins. Groups that began before are left out, but
    /// for one in which functions go through all passes: that is begun anew.
    pub fn suffix(&self, from: usize) -> Plan {
        let mut suffix = Plan::default();
        let mut begins: Vec<usize> = Vec::new();
        let around = self.steps[..from].iter().rposition(|step| match step {
            Step::Begin(group) => group.kind == GroupKind::Functions && group.end >= from,
            _ => false,
        });
        for number in around.into_iter().chain(from..self.steps.len()) {
            match &self.steps[number] {
                Step::Phase(_) if number > from => break,
                Step::End(_) if begins.is_empty() => continue,
                Step::End(_) => suffix.end(begins.pop().expect("it is not empty")),
                step => {
                    let mut step = step.clone();
                    if let Step::Pass(PassStep { reason: Reason::Required { root, .. }, .. }) =
                        &mut step
                    {
                        // What it is done for comes as far behind it.
                        *root = *root - number + suffix.steps.len();
                    }
                    begins.extend(matches!(step, Step::Begin(_)).then_some(suffix.steps.len()));
                    suffix.steps.push(step);
                }
            }
        }
        suffix
    }

    /// Ends the group that the step of this number begins.
    pub(super) fn end(&mut self, begin: usize) {
        let end = self.steps.len();
        if let Step::Begin(group) = &mut self.steps[begin] {
            group.end = end;
        }
        self.steps.push(Step::End(begin));
    }
}

/// As a textual pipeline that gives the same plan again.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for step in &self.steps {
            let required = |pass: &PassStep| matches!(pass.reason, Reason::Required { .. });
            if matches!(step, Step::Pass(pass) if required(pass)) {
                continue;
            }
            if !is_first && !matches!(step, Step::End(_)) {
                f.write_str(", ")?;
            }
            is_first = matches!(step, Step::Begin(_));
            match step {
                Step::Phase(phase) => write!(f, "enter({phase})")?,
                Step::Pass(pass) => {
                    f.write_str(&pass.name)?;
                    let set = pass.options.iter().filter(|option| option.set_by.is_some());
                    write_options(f, set.map(|option| (&*option.name, option.value.to_string())))?;
                }
                Step::Begin(group) => write!(f, "{}(", group.kind.name())?,
                Step::End(begin) => {
                    f.write_str(")")?;
                    if let Step::Begin(group) = &self.steps[*begin] {
                        write_options(f, group.options())?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl GroupStep {
    /// What stands in braces behind it.
    fn options(&self) -> impl Iterator<Item = (&'static str, String)> {
        let max = match self.kind {
            GroupKind::Fixpoint { max } => Some(("max", max.to_string())),
            GroupKind::Sequence | GroupKind::Composite | GroupKind::Functions => None,
        };
        let pass = &self.step.pass;
        let name = (pass.name() != self.kind.name())
            .then(|| ("name", OptionValue::Str(pass.name().to_owned()).to_string()));
        let level = (pass.level() > 0).then(|| ("opt_level", pass.level().to_string()));
        max.into_iter().chain(name).chain(level)
    }
}

fn write_options<'n>(
    f: &mut fmt::Formatter<'_>,
    options: impl Iterator<Item = (&'n str, String)>,
) -> fmt::Result {
    let options: Vec<String> = options.map(|(name, value)| format!("{name}={value}")).collect();
    match options.is_empty() {
        true => Ok(()),
        false => write!(f, "{{{}}}", options.join(", ")),
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
            Reason::Called => f.write_str("called"),
            Reason::Member { of } => write!(f, "in {of}"),
            Reason::Pinned { of } => write!(f, "a part of {of}"),
            Reason::Required { by, .. } => write!(f, "required by {by}, unless it still holds"),
        }
    }
}
