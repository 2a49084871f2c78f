//! What is looked at of one pass.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenon_plugin_api::ir::Context;
use thiserror::Error;

use super::Check;
use super::corpus::{Case, Corpus, UNKNOWN_NODE};
use crate::border::REFUSAL;
use crate::check::check;
use crate::diagnostics::Diagnostic;
use crate::ir::{Module, PHASES};
use crate::passes::{
    Instrument, PassContext, PassError, PassStep, Plan, PlanError, Reason, Step, StepInfo, plan,
    run,
};
use crate::registry::{OptionRecord, OptionType, OptionValue, PassRecord, Registry, Scalar};
use crate::target::Target;
use crate::text::{WeightsPolicy, print_module};
use crate::validate::Reference;

/// A pass, and with what it is examined.
pub(super) struct Examination<'e> {
    pub(super) registry: &'e Registry,
    /// The same with processes of one thread.
    pub(super) one_thread: &'e Registry,
    pub(super) record: &'e PassRecord,
    pub(super) target: &'e Target,
    pub(super) seed: u64,
    /// How long it may take over a module.
    pub(super) time_limit: Duration,
    /// Set when it was stopped for want of time: nobody waits for that again and again.
    pub(super) has_hung: Cell<bool>,
}

/// How the pass ended on a module.
enum Ran {
    /// With a module.
    Module(Module),
    /// With an error of its own, or since it was told to stop.
    Refused(String),
    /// In a way in which no pass should end.
    Wrong(String),
}

/// How a pass is run.
#[derive(Clone, Default)]
struct How {
    /// After so many edits the host refuses them.
    edit_limit: Option<u32>,
    /// It is told to stop when it begins.
    is_cancelled: bool,
}

/// Tells a pass to stop when it begins: one that has not begun would not be run.
struct Stop(Arc<AtomicBool>);

impl Instrument for Stop {
    fn before(&mut self, _: StepInfo<'_>, _: &Module) -> Result<(), Box<Diagnostic>> {
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// What is wrong, by check, and on how much each was tried.
#[derive(Default)]
struct Findings {
    counts: BTreeMap<&'static str, usize>,
    wrong: BTreeMap<&'static str, Vec<String>>,
}

/// Lines that a check that fails has at most.
const MOST_LINES: usize = 5;

/// Numbers of edits after which the host refuses one.
const EDIT_LIMITS: &[u32] = &[0, 1, 2, 7];

/// Modules on which each value of an option is tried.
const MODULES_PER_VALUE: usize = 4;

impl Findings {
    fn look(&mut self, check: &'static str, wrong: Option<String>) {
        *self.counts.entry(check).or_default() += 1;
        if let Some(wrong) = wrong {
            let lines = self.wrong.entry(check).or_default();
            if lines.len() < MOST_LINES {
                lines.push(wrong);
            }
        }
    }
}

/// Why a pass cannot be looked at.
#[derive(Debug, Error)]
enum NoPlan {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("it is not the last of its plan")]
    NotLast,
}

impl Examination<'_> {
    /// All checks of the pass.
    pub(super) fn checks(&self, corpus: &mut Corpus) -> Vec<Check> {
        let name = self.record.name.as_str();
        let (before, step) = match self.plan() {
            Ok(plan) => plan,
            Err(error) => {
                return vec![Check::new(
                    Some(name),
                    "runs",
                    String::new(),
                    vec![error.to_string()],
                )];
            }
        };
        let long = corpus.long(self.registry, &before, self.target);
        let cases = corpus.after(self.registry, &before, self.target);
        let findings = RefCell::new(Findings::default());
        for case in cases {
            self.look_at(case, &step, &mut findings.borrow_mut());
        }
        for case in cases {
            self.refuse_edits(case, &step, &mut findings.borrow_mut());
        }
        if let Some(long) = long {
            let how = How { is_cancelled: true, ..How::default() };
            let wrong = match self.run(self.registry, &step, &long, &how) {
                Ran::Wrong(wrong) => Some(wrong),
                Ran::Module(_) | Ran::Refused(_) => None,
            };
            findings.borrow_mut().look("cancellation", wrong);
        }
        self.fuzz_options(cases, &step, &mut findings.borrow_mut());
        let findings = findings.into_inner();
        let names = [
            ("runs", "no module reaches its phase"),
            ("well formed", "it gave no module"),
            ("same results", "nothing of what it ran on can be evaluated"),
            ("deterministic", "no module reaches its phase"),
            ("idempotent", "the manifest does not claim it"),
            ("unknown kinds", "no module with an unknown kind reaches its phase"),
            ("errors", "no module reaches its phase"),
            ("cancellation", "no long module reaches its phase"),
            ("options", "it has none"),
        ];
        let check = |(check, why): (&'static str, &str)| {
            let count = findings.counts.get(check).copied().unwrap_or(0);
            let wrong = findings.wrong.get(check).cloned().unwrap_or_default();
            match count {
                0 => Check::skipped(name, check, why),
                1 => Check::new(Some(name), check, "1 run".to_owned(), wrong),
                _ => Check::new(Some(name), check, format!("{count} runs"), wrong),
            }
        };
        names.into_iter().map(check).collect()
    }

    /// What runs before the pass, phases and requirements, and its own step.
    fn plan(&self) -> Result<(Plan, PassStep), NoPlan> {
        let before = PHASES.iter().position(|phase| *phase == self.record.phase).unwrap_or(0);
        let phases = PHASES[..before]
            .iter()
            .filter(|phase| self.registry.config().phases.contains_key(**phase));
        let mut text: String = phases.map(|phase| format!("phase({phase}), ")).collect();
        text.push_str(&self.record.name);
        let mut plan = plan(self.registry, &text)?;
        let Some(Step::Pass(mut step)) = plan.steps.pop() else {
            return Err(NoPlan::NotLast);
        };
        step.reason = Reason::Called;
        let last = plan.steps.len();
        for step in &mut plan.steps {
            // What was required by the pass itself.
            if let Step::Pass(step) = step
                && matches!(step.reason, Reason::Required { root, .. } if root == last)
            {
                step.reason = Reason::Called;
            }
        }
        Ok((plan, step))
    }

    fn run(&self, registry: &Registry, step: &PassStep, module: &Module, how: &How) -> Ran {
        if self.has_hung.get() && !how.is_cancelled {
            return Ran::Wrong("not run again, since it did not end before".to_owned());
        }
        let start = Instant::now();
        let ran = self.run_once(registry, step, module, how);
        self.has_hung.set(
            self.has_hung.get() || ran.wrong().is_some() && start.elapsed() >= self.time_limit,
        );
        ran
    }

    fn run_once(&self, registry: &Registry, step: &PassStep, module: &Module, how: &How) -> Ran {
        let plan = Plan { steps: vec![Step::Pass(step.clone())], ..Plan::default() };
        let mut cx = PassContext {
            target: self.target.attrs(module.cx()),
            edit_limit: how.edit_limit,
            ..PassContext::default()
        };
        if how.is_cancelled {
            cx.instruments.push(Box::new(Stop(cx.cancelled.clone())));
        }
        match run(registry, &plan, module, &mut cx) {
            Ok(after) => Ran::Module(after),
            Err(PassError::Failed { failure, .. }) if failure.is_its_own() => {
                Ran::Refused(failure.message)
            }
            Err(PassError::Failed { failure, .. }) => Ran::Wrong(failure.message),
            Err(error) => Ran::Wrong(error.to_string()),
        }
    }

    /// Runs the pass on a module, and looks at what comes of it.
    fn look_at(&self, (case, module): &Case, step: &PassStep, findings: &mut Findings) {
        let about = |wrong: String| format!("{case}: {wrong}");
        let how = How::default();
        let first = self.run(self.registry, step, module, &how);
        findings.look("runs", first.wrong().map(about));
        if let Ran::Wrong(_) = first {
            return;
        }
        let again = self.run(self.registry, step, module, &how);
        let elsewhere = self.run(self.one_thread, step, module, &how);
        let text = first.text();
        let differs = |other: &Ran, when: &str| {
            (other.text() != text).then(|| format!("{case}: {when} it gives something else"))
        };
        let differs = differs(&again, "a second time")
            .or_else(|| differs(&elsewhere, "in another process with one thread"));
        findings.look("deterministic", differs);
        let Ran::Module(after) = &first else { return };
        let (ill_formed, differs) = self.judge(module, after);
        findings.look("well formed", ill_formed.map(about));
        if let Some(differs) = differs {
            findings.look("same results", differs.map(about));
        }
        if self.record.idempotent {
            let twice = self.run(self.registry, step, after, &how);
            // The names of variables may change.
            let is_same = matches!(&twice, Ran::Module(twice)
                if twice.structural_hash() == after.structural_hash());
            let differs = (!is_same).then(|| about("the second run changes it".to_owned()));
            findings.look("idempotent", differs);
        }
        let unknown = |module: &Module| text_of(module).matches(UNKNOWN_NODE).count();
        let (had, has) = (unknown(module), unknown(after));
        if had > 0 {
            let lost = (has < had).then(|| about("a node of an unknown kind is gone".to_owned()));
            findings.look("unknown kinds", lost);
        }
    }

    /// What is ill formed in a module that the pass gave, and how it computes something else; `None` where that
    /// cannot be compared.
    fn judge(&self, before: &Module, after: &Module) -> (Option<String>, Option<Option<String>>) {
        let ill_formed = check(after).first().map(|it| it.to_diagnostic().message);
        let reference = Reference::new(before, self.seed);
        let differs = (!reference.is_empty()).then(|| {
            let difference = reference.advance(after).err()?;
            let function = after.cx().terms().str(difference.function);
            Some(format!("@{function}: {}", difference.how))
        });
        (ill_formed, differs)
    }

    /// Runs the pass while the host refuses edits.
    fn refuse_edits(&self, (case, module): &Case, step: &PassStep, findings: &mut Findings) {
        for &limit in EDIT_LIMITS {
            let how = How { edit_limit: Some(limit), ..How::default() };
            let ran = self.run(self.registry, step, module, &how);
            // The Rust API fails for its pass where an edit is refused, and tells the host's reason.
            let wrong = ran.wrong().filter(|wrong| !wrong.contains(REFUSAL));
            let about = |wrong: String| format!("{case}, after {limit} edits: {wrong}");
            findings.look("errors", wrong.map(about));
        }
    }

    /// Runs the pass with values of its options.
    fn fuzz_options(&self, cases: &[Case], step: &PassStep, findings: &mut Findings) {
        for (number, option) in self.record.options.iter().enumerate() {
            for value in values(option) {
                let mut step = step.clone();
                step.options[number].value = value.clone();
                for (case, module) in cases.iter().take(MODULES_PER_VALUE) {
                    let wrong = match self.run(self.registry, &step, module, &How::default()) {
                        Ran::Module(after) => {
                            let (ill_formed, differs) = self.judge(module, &after);
                            ill_formed.or(differs.flatten())
                        }
                        other => other.wrong(),
                    };
                    let about = |wrong| format!("{case}, {} = {value}: {wrong}", option.name);
                    findings.look("options", wrong.map(about));
                }
            }
        }
    }
}

impl Ran {
    fn wrong(&self) -> Option<String> {
        match self {
            Ran::Wrong(wrong) => Some(wrong.clone()),
            Ran::Refused(message) if message.trim().is_empty() => {
                Some("it fails and does not say why".to_owned())
            }
            Ran::Module(_) | Ran::Refused(_) => None,
        }
    }

    /// What two runs have in common when they are equal.
    fn text(&self) -> String {
        match self {
            Ran::Module(module) => text_of(module),
            Ran::Refused(message) | Ran::Wrong(message) => message.clone(),
        }
    }
}

fn text_of(module: &Module) -> String {
    print_module(module, &mut WeightsPolicy::inline())
}

/// Values that an option's declaration allows: its ends, its words, and what lies far out.
fn values(option: &OptionRecord) -> Vec<OptionValue> {
    let scalars = |scalar: Scalar| match scalar {
        Scalar::Bool => vec![OptionValue::Bool(false), OptionValue::Bool(true)],
        Scalar::Int => {
            let ends =
                [&option.min, &option.max].map(|end| end.as_ref().and_then(|it| it.as_i64()));
            let near = [0, 1, -1, 2, 7, i64::MAX, i64::MIN];
            ends.into_iter().flatten().chain(near).map(OptionValue::Int).collect()
        }
        Scalar::Float => {
            let ends =
                [&option.min, &option.max].map(|end| end.as_ref().and_then(|it| it.as_f64()));
            let near = [0.0, 1.0, -1.0, 0.5, 1e-300, 1e300];
            ends.into_iter().flatten().chain(near).map(OptionValue::Float).collect()
        }
        Scalar::Str if option.one_of.is_empty() => {
            let texts = ["", "x", "\u{1f980} \"\\\n"];
            texts.map(|text| OptionValue::Str(text.to_owned())).to_vec()
        }
        Scalar::Str => option.one_of.iter().cloned().map(OptionValue::Str).collect(),
    };
    let values = match &option.ty {
        OptionType::One(scalar) => scalars(*scalar),
        OptionType::List(scalar) => {
            let all = scalars(*scalar)
                .into_iter()
                .filter(|it| option.fit(&OptionValue::List(vec![it.clone()])).is_ok());
            let all: Vec<OptionValue> = all.collect();
            let one = all.iter().take(1).cloned().collect();
            [Vec::new(), one, all].map(OptionValue::List).to_vec()
        }
        OptionType::Unknown(_) => Vec::new(),
    };
    let mut fitting: Vec<OptionValue> = Vec::new();
    for value in values.iter().filter_map(|value| option.fit(value).ok()) {
        if !fitting.contains(&value) {
            fitting.push(value);
        }
    }
    fitting
}
