//! The facet `schedule`: how a tensor program runs.
//!
//! A question is a program and its target; the key is the operator that it computes, its attribute `op_name`, and then `any`, for
//! any program. A rule applies primitives; its answer is the trace of what it applied, with the knobs that it set and what it says of
//! them. A rule that meets a refusal, applies nothing, or does not set the knobs that the program asks for does not match, and the
//! next one is asked. A rule that gives a knob a value which it does not declare is broken, and that is an error: if it did not match,
//! a slower rule would take the program and nobody would know.

use std::collections::BTreeMap;

use tenon_plugin_api::abi::host::Host;
use tenon_plugin_api::ir::{AttrValue, Attrs, AttrsView, Context, Symbol, Term, TermView};
use tenon_plugin_api::pass::{PassError, Rewriter};
use tenon_plugin_api::rule::{Facet, Knob, Question, Reply, Rules};

use crate::machine::{Machine, Total};
use crate::refusal::{self, Refusal};
use crate::schedule::Schedule;
use crate::trace::{Script, TraceError};

/// The facet.
pub struct OfProgram;

/// What the trace is called in an answer.
const TRACE: &str = "trace";
/// The key of rules for any program.
const ANY: &str = "any";

/// Attribute of a tensor program: values of knobs that whoever schedules it is to take, by their names.
const KNOBS: &str = "knobs";

/// What a rule is asked: how a program is to run.
pub struct Task {
    /// The program, to be scheduled.
    pub schedule: Schedule,
    cx: Host,
    target: Attrs,
    machine: Machine,
    rule: &'static str,
    declared: &'static [Knob],
    wanted: BTreeMap<String, i64>,
    chosen: BTreeMap<&'static str, i64>,
    total: Option<Total>,
    cycles: Option<f64>,
    reason: String,
    /// What the rule did that no rule may.
    fault: Option<String>,
}

impl Task {
    /// What the program is for; `docs/targets.md` lists the keys.
    pub fn target(&self) -> AttrsView<'_> {
        self.cx.terms().attrs(self.target)
    }

    /// Whether the program runs on a processor, rather than on a device with threads of its own.
    pub fn is_for_cpu(&self) -> bool {
        self.target().str("kind").is_none_or(|kind| kind == "cpu")
    }

    /// Whether the processor has a feature, `avx2` or `dotprod`.
    pub fn has_feature(&self, name: &str) -> bool {
        let terms = self.cx.terms();
        match self.target().get("features") {
            Some(TermView::List(all)) => {
                all.iter().any(|&feature| terms.view(feature) == TermView::Str(name))
            }
            _ => false,
        }
    }

    /// The machine that the target is.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// What the program computes as it was given; nothing where an extent is not known.
    pub fn total(&self) -> Option<Total> {
        self.total
    }

    /// The value that a knob was asked to have, if it was.
    pub fn wanted(&self, knob: &str) -> Option<i64> {
        self.wanted.get(knob).copied()
    }

    /// Whether a knob may have a value: the rule declares it, and no other was asked for.
    pub fn may_choose(&self, knob: &str, value: i64) -> bool {
        let mut declared = self.declared.iter();
        declared.any(|it| it.name == knob && (it.least..=it.most).contains(&value))
            && self.wanted(knob).is_none_or(|wanted| wanted == value)
    }

    /// Says which value a knob of this rule has: the one that was asked for, or the best one that the rule knows.
    ///
    /// # Errors
    /// When the rule does not declare such a knob, or the value is out of its range. Whoever asks the rule is then told that it is
    /// broken.
    pub fn choose(&mut self, knob: &str, value: i64) -> refusal::Result<()> {
        let fault = match self.declared.iter().find(|declared| declared.name == knob) {
            Some(&Knob { name, least, most }) if (least..=most).contains(&value) => {
                self.chosen.insert(name, value);
                return Ok(());
            }
            Some(&Knob { name, least, most }) => {
                format!("chooses {value} for its knob `{name}`, which goes from {least} to {most}")
            }
            None => format!("chooses {value} for a knob `{knob}`, which it does not declare"),
        };
        self.fault = Some(fault.clone());
        Err(Refusal::new(fault))
    }

    /// Says why the program is scheduled so, in a sentence.
    pub fn because(&mut self, reason: impl Into<String>) {
        self.reason = reason.into();
    }

    /// Says in how many cycles of the machine the program will run, where the rule knows better than what arithmetic and memory need
    /// at least.
    pub fn predict(&mut self, cycles: f64) {
        self.cycles = Some(cycles);
    }

    /// What is told of the answer.
    fn report(&self) -> Attrs {
        let knobs: Vec<(&str, AttrValue)> =
            self.chosen.iter().map(|(name, value)| (*name, (*value).into())).collect();
        let mut report: Vec<(&str, AttrValue)> = vec![("rule", self.rule.into())];
        if !knobs.is_empty() {
            report.push((KNOBS, AttrValue::Term(Term(self.cx.attrs(&knobs).0))));
        }
        if !self.reason.is_empty() {
            report.push(("because", self.reason.as_str().into()));
        }
        if let Some(total) = self.total {
            let mut numbers = vec![("operations", total.weighted()), ("bytes", total.bytes)];
            // Of other devices nothing is known that cycles could be told by.
            if self.is_for_cpu() {
                let (machine, threads) = (self.machine, self.machine.threads);
                // What a rule predicts knows its instructions, some of which do more than multiply-adds of f32.
                let of_rule = |cycles: f64| cycles.max(machine.memory_cycles(&total, threads));
                let cycles = self.cycles.map_or(machine.cycles(&total, threads), of_rule);
                numbers.push(("cycles", cycles));
            }
            let numbers = numbers.into_iter();
            report.extend(numbers.map(|(key, number)| (key, (number.ceil() as i64).into())));
        }
        self.cx.attrs(&report)
    }

    /// Whether all knobs were set that were asked for.
    fn has_all_wanted(&self) -> bool {
        self.wanted.iter().all(|(name, value)| self.chosen.get(name.as_str()) == Some(value))
    }
}

impl Facet for OfProgram {
    const NAME: &'static str = "schedule";
    type Ask<'a> = Task;
    type Answer = refusal::Result<()>;

    fn ask(question: Question<'_>) -> Result<Task, PassError> {
        let program = question.copy_of_program()?;
        let mut schedule = Schedule::of(&program)?;
        let cx = question.context().clone();
        let target = Attrs(question.data().0);
        let machine = Machine::of(cx.terms().attrs(target));
        if cx.terms().attrs(target).str("float") == Some("strict") {
            schedule.keep_order();
        }
        let wanted = wanted(cx.terms().attrs(program.attrs()))?;
        let total = schedule.total();
        let (rule, declared) = (question.rule(), question.knobs());
        let (chosen, cycles, reason) = (BTreeMap::new(), None, String::new());
        Ok(Task {
            schedule,
            cx,
            target,
            machine,
            rule,
            declared,
            wanted,
            chosen,
            total,
            cycles,
            reason,
            fault: None,
        })
    }

    fn concerns(task: &Task) -> bool {
        task.wanted.iter().all(|(name, &value)| task.may_choose(name, value))
    }

    fn reply(ask: &mut Task, _: refusal::Result<()>) -> Result<Reply, PassError> {
        let trace = ask.schedule.trace().to_string();
        let data = ask.cx.with_attr(ask.report(), TRACE, trace.into());
        Ok(Reply { nodes: Vec::new(), data: Term(data.0) })
    }

    fn reply_or_decline(
        ask: &mut Task,
        answer: refusal::Result<()>,
    ) -> Result<Option<Reply>, PassError> {
        if let Some(fault) = &ask.fault {
            return Err(PassError::new(format!("the rule `{}` of `schedule` {fault}", ask.rule)));
        }
        let why = match &answer {
            Err(refusal) => refusal.to_string(),
            Ok(()) if !ask.schedule.has_changed() => "it applies nothing".to_owned(),
            Ok(()) if !ask.has_all_wanted() => {
                "it does not set the knobs that are asked for".to_owned()
            }
            Ok(()) => return Self::reply(ask, answer).map(Some),
        };
        ask.cx.decline(&format!("{}: {why}", ask.rule));
        Ok(None)
    }
}

/// The knobs that a program asks for.
fn wanted(attrs: AttrsView<'_>) -> Result<BTreeMap<String, i64>, PassError> {
    let knobs = match attrs.get(KNOBS) {
        None => return Ok(BTreeMap::new()),
        Some(TermView::Dict(knobs)) => knobs,
        Some(_) => return Err(PassError::new("`knobs` is no dictionary of integers")),
    };
    let value = |name: &str| {
        let no_number = || PassError::new(format!("the knob `{name}` is no integer"));
        Ok((name.to_owned(), knobs.int(name).ok_or_else(no_number)?))
    };
    knobs.iter().map(|(name, _)| value(name)).collect()
}

/// What a rule answers.
pub struct Answered {
    /// What is to be done to the program.
    pub trace: Script,
    /// What is told of it: `rule`, `knobs`, `because`, `operations`, `bytes`, `cycles`, as far as they are known.
    pub report: Attrs,
}

/// What came of asking.
pub struct Asked {
    /// The answer of the best rule that has one.
    pub answer: Option<Answered>,
    /// The rules that were asked before it and did not match, each with its reason.
    pub declined: Vec<String>,
}

/// The answer of the best rule for the program that `rw` edits, which computes the operator `op`, on a target.
///
/// # Errors
/// When a rule fails, two rules for one key come first, or no rule sets the knobs that the program asks for.
pub fn ask(
    rules: &mut Rules<OfProgram>,
    rw: &mut Rewriter,
    op: Option<Symbol>,
    target: Attrs,
) -> Result<Asked, PassError> {
    use tenon_plugin_api::ir::Build;
    let any = rw.with_cx(|cx| cx.symbol(ANY));
    let mut declined = Vec::new();
    for key in op.into_iter().chain([any]) {
        let reply = rules.ask(rw, key, &[], Term(target.0))?;
        declined.append(&mut rules.declined());
        let Some(reply) = reply else { continue };
        let no_trace = |why: String| {
            PassError::new(format!("a rule of `schedule` answers what is no trace{why}"))
        };
        let terms = rw.body().terms();
        let TermView::Dict(answer) = terms.view(reply.data) else {
            return Err(no_trace(String::new()));
        };
        let Some(text) = answer.str(TRACE) else { return Err(no_trace(String::new())) };
        let trace = text.parse().map_err(|error: TraceError| no_trace(format!(": {error}")))?;
        let report = rw.with_cx(|cx| cx.without_attr(Attrs(reply.data.0), TRACE));
        return Ok(Asked { answer: Some(Answered { trace, report }), declined });
    }
    let root = rw.body().root();
    let wanted = wanted(rw.body().terms().attrs(rw.body().attrs(root)))?;
    if wanted.is_empty() {
        return Ok(Asked { answer: None, declined });
    }
    let wanted: Vec<String> =
        wanted.iter().map(|(name, value)| format!("`{name} = {value}`")).collect();
    let text = format!(
        "no rule schedules this program with {}; `tenon rules list --facet schedule` shows the knobs of rules",
        wanted.join(" and ")
    );
    Err(PassError::new(text))
}
