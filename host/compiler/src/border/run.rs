//! The state of one run of a pass, and of each call that it makes of the plugin.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::{self, ThreadId};

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use tenon_plugin_api::abi::tables::Failure;
use tenon_plugin_api::ir::{Attrs, Expr};

use super::generators::{GeneratorError, Generators};
use super::imports::Lent;
use super::operators::Results;
use crate::ir::{Cx, Fit, Function, Module, Rule, RuleReply};
use crate::target::TargetsOfFunctions;
use crate::tune::Measuring;

/// What a plugin's calls refer to while one of its passes runs.
pub struct Run {
    /// The context of the module's terms.
    pub cx: Cx,
    /// The pass's options, defaults filled in.
    pub options: Attrs,
    /// The target's description: of the function, where the pass is over one.
    pub target: Attrs,
    targets: Arc<TargetsOfFunctions>,
    /// Set to ask the pass to stop.
    pub cancelled: Arc<AtomicBool>,
    generators: Option<Arc<dyn Generators>>,
    measuring: Arc<Measuring>,
    module: Option<Module>,
    /// The facets whose rules it may ask for; any where there is no manifest that says it.
    asks: Option<Arc<[String]>>,
    reports: Mutex<Vec<Report>>,
    refused: OnceLock<String>,
    /// Edits that are left, where there is a limit.
    edits_left: Option<AtomicU32>,
    /// The rules that were found, with the name of their facet and key; each is known by its place, counted from 1.
    rules: RwLock<Vec<Arc<KeptRules>>>,
}

/// Rules with the name of their facet and key.
pub(super) type KeptRules = (String, Arc<[Rule]>);

/// How serious a report is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ReportLevel {
    /// Something is wrong, though the pass went on.
    Error,
    /// Something is probably not as the user wants it.
    Warning,
    /// Worth knowing.
    Note,
    /// For whoever watches closely.
    Trace,
}

/// Something a pass reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How serious it is.
    pub level: ReportLevel,
    /// The text.
    pub text: String,
}

/// How a pass ended when it did not end well.
#[derive(Debug, Clone)]
pub struct PassFailure {
    /// The plugin's message, or where it panicked.
    pub message: String,
    /// The node of the function that it is about.
    pub node: Option<Expr>,
    /// The function that the pass made, when it is about a node of that.
    pub program: Option<Arc<Function>>,
    /// Whether the pass stopped because it was told to.
    pub is_cancelled: bool,
    /// Whether it panicked.
    pub is_panic: bool,
    /// Whether the host says so, and not the pass.
    pub by_host: bool,
}

impl PassFailure {
    /// A pass that fails with a message.
    pub fn error(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            message,
            node: None,
            program: None,
            is_cancelled: false,
            is_panic: false,
            by_host: false,
        }
    }

    /// The pass gave the host something that cannot be used.
    pub(crate) fn refused(what: &str) -> Self {
        Self { by_host: true, ..Self::error(what) }
    }

    /// The pass did not stop by itself when it was told to.
    pub(crate) fn cancelled(what: &str) -> Self {
        Self { is_cancelled: true, ..Self::refused(what) }
    }

    pub(super) fn new(failure: Failure, message: String, node: Option<Expr>) -> Self {
        Self {
            message,
            node,
            program: None,
            is_cancelled: failure == Failure::CANCELLED,
            is_panic: failure == Failure::PANIC,
            by_host: false,
        }
    }

    /// Whether the pass failed as a pass may: by an error that it tells itself.
    pub fn is_its_own(&self) -> bool {
        !self.by_host && !self.is_panic
    }
}

impl Run {
    /// The state for a run.
    pub fn new(cx: Cx, options: Attrs, target: Attrs, cancelled: Arc<AtomicBool>) -> Self {
        Self::of_module(cx, options, &Arc::new(TargetsOfFunctions::new(target)), cancelled)
    }

    /// The state for a run over a module whose functions are for these targets.
    pub fn of_module(
        cx: Cx,
        options: Attrs,
        targets: &Arc<TargetsOfFunctions>,
        cancelled: Arc<AtomicBool>,
    ) -> Self {
        Self {
            cx,
            options,
            target: targets.of_module(),
            targets: targets.clone(),
            cancelled,
            generators: None,
            measuring: Arc::default(),
            module: None,
            asks: None,
            reports: Mutex::default(),
            refused: OnceLock::new(),
            edits_left: None,
            rules: RwLock::default(),
        }
    }

    /// This run with code generators, which there are none of otherwise.
    pub fn with_generators(self, generators: Arc<dyn Generators>) -> Self {
        Self { generators: Some(generators), ..self }
    }

    /// This run with somebody who measures schedules, whom there is not otherwise.
    pub fn with_measuring(self, measuring: Arc<Measuring>) -> Self {
        Self { measuring, ..self }
    }

    /// This run with the module that the pass is given, whose tensor programs can then be evaluated.
    pub fn with_module(self, module: Module) -> Self {
        Self { module: Some(module), ..self }
    }

    /// This run, of a pass that says which facets it asks for.
    pub fn with_asks(self, facets: &[String]) -> Self {
        Self { asks: Some(facets.into()), ..self }
    }

    /// Whether the pass says that it asks for rules of a facet.
    pub(super) fn may_ask(&self, facet: &str) -> bool {
        self.asks.as_ref().is_none_or(|asks| asks.iter().any(|asked| asked == facet))
    }

    /// The module that the pass was given.
    pub(crate) fn module(&self) -> Option<&Module> {
        self.module.as_ref()
    }

    /// Who measures schedules.
    pub(crate) fn measuring(&self) -> &Measuring {
        &self.measuring
    }

    /// The code generators.
    pub(crate) fn generators(&self) -> Result<&dyn Generators, GeneratorError> {
        self.generators.as_deref().ok_or(GeneratorError::None)
    }

    /// The same, where edits are refused after so many.
    pub fn with_edit_limit(self, limit: Option<u32>) -> Self {
        Self { edits_left: limit.map(AtomicU32::new), ..self }
    }

    /// What the code of a function is for: what it says itself, or what the module is compiled for.
    pub fn target_of(&self, function: &Function) -> Attrs {
        self.targets.of(&self.cx, function)
    }

    /// A run of the same pass over a function: nothing was reported or refused yet.
    pub(crate) fn for_function(&self, function: &Function) -> Self {
        let (cx, cancelled) = (self.cx.clone(), self.cancelled.clone());
        let run = Self::of_module(cx, self.options, &self.targets, cancelled);
        Self {
            target: self.target_of(function),
            generators: self.generators.clone(),
            measuring: self.measuring.clone(),
            module: self.module.clone(),
            asks: self.asks.clone(),
            ..run.with_edit_limit(self.edit_limit())
        }
    }

    /// Edits that are left, where there is a limit.
    pub fn edit_limit(&self) -> Option<u32> {
        self.edits_left.as_ref().map(|left| left.load(Ordering::Relaxed))
    }

    /// The number of rules that were found.
    pub(super) fn keep_rules(&self, name: String, rules: Arc<[Rule]>) -> u32 {
        let mut all = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = |kept: &Arc<KeptRules>| Arc::ptr_eq(&kept.1, &rules);
        if let Some(at) = all.iter().position(is_same) {
            return at as u32 + 1;
        }
        all.push(Arc::new((name, rules)));
        all.len() as u32
    }

    /// The rules that have this number.
    pub(super) fn kept_rules(&self, number: u32) -> Option<Arc<KeptRules>> {
        let all = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        all.get((number as usize).checked_sub(1)?).cloned()
    }

    /// Takes one of the edits that are left.
    pub(super) fn may_edit(&self) -> bool {
        let take = |left: &AtomicU32| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        };
        self.edits_left.as_ref().is_none_or(|left| take(left).is_ok())
    }

    /// Whether the pass is asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Remembers that the plugin gave something that cannot be used. Its pass fails when it has ended.
    pub fn refuse(&self, what: String) {
        self.refused.get_or_init(|| what);
    }

    /// The first thing that was refused.
    pub fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Adds a report.
    pub fn report(&self, level: ReportLevel, text: String) {
        lock(&self.reports).push(Report { level, text });
    }

    /// Takes the reports made so far.
    pub fn take_reports(&self) -> Vec<Report> {
        std::mem::take(&mut lock(&self.reports))
    }
}

/// Why the last call of each thread failed.
type ErrorTexts = Vec<(ThreadId, Box<str>)>;

/// Runs what calls a plugin's code, and notes that it does.
pub(crate) type NotedCall = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// What rules said that were asked.
#[derive(Default)]
pub(super) struct Heard {
    /// The answer of the one that has one.
    pub(super) answer: RuleReply,
    /// Why those have none that said so.
    pub(super) declined: Vec<Box<str>>,
}

/// One call of a pass, over one unit: what a plugin's pointer to a run leads to.
pub(crate) struct Call {
    pub(super) run: Arc<Run>,
    failure: OnceLock<(Failure, PassFailure)>,
    /// Why the last call of each thread failed. A text stays where it is until it is replaced.
    errors: Arc<Mutex<ErrorTexts>>,
    /// Runs what calls the plugin's code on another thread, and notes that it does.
    noted: Option<NotedCall>,
    /// What a code generator made.
    object: Mutex<Option<Vec<u8>>>,
    /// What an operator makes, while one is evaluated.
    results: Option<Results>,
    /// What an operator takes for granted of dimensions, while its type is asked for.
    pub(super) fits: Option<Mutex<Vec<Fit>>>,
    /// Whether it is of a rule, which may ask for others whoever asks for it.
    is_of_rule: bool,
    /// What a rule answers, while one is asked.
    reply: Mutex<Option<RuleReply>>,
    /// The call of the last rule that this one asked, for the next one: a rule is asked for every node.
    of_rule: Mutex<Option<Arc<Call>>>,
    /// What each thread heard when it asked rules last. It stays where it is until the thread asks again.
    heard: Mutex<Vec<(ThreadId, Box<Heard>)>>,
    /// Why a rule has no answer, while one is asked.
    why: Mutex<Option<Box<str>>>,
    /// The importer's state, while a rule is asked about a node and no service of the importer's is running.
    lent: Mutex<Option<Lent>>,
}

impl Call {
    pub(crate) fn new(run: Arc<Run>) -> Self {
        Self {
            run,
            failure: OnceLock::new(),
            errors: Arc::default(),
            noted: None,
            object: Mutex::default(),
            results: None,
            fits: None,
            is_of_rule: false,
            reply: Mutex::default(),
            of_rule: Mutex::default(),
            heard: Mutex::default(),
            why: Mutex::default(),
            lent: Mutex::default(),
        }
    }

    /// This call, of what is noted so.
    pub(crate) fn with_noted(self, noted: NotedCall) -> Self {
        Self { noted: Some(noted), ..self }
    }

    /// Runs a part of what the plugin does, on whatever thread.
    pub(super) fn noted(&self, part: &mut dyn FnMut()) {
        match &self.noted {
            Some(noted) => noted(part),
            None => part(),
        }
    }

    /// The call of a rule that this one asks. It sees why an edit of this one's transaction failed.
    pub(super) fn of_rule(&self) -> Arc<Self> {
        lock(&self.of_rule).take().unwrap_or_else(|| {
            let errors = self.errors.clone();
            Arc::new(Self { errors, is_of_rule: true, ..Self::new(self.run.clone()) })
        })
    }

    /// Whether it may ask for rules of a facet.
    pub(super) fn may_ask(&self, facet: &str) -> bool {
        self.is_of_rule || self.run.may_ask(facet)
    }

    /// Keeps the call of a rule for the next one, when nobody holds it and nothing is left in it.
    pub(super) fn keep(&self, of_rule: Arc<Self>) {
        if Arc::strong_count(&of_rule) == 1 && of_rule.failure.get().is_none() {
            *lock(&self.of_rule) = Some(of_rule);
        }
    }

    /// Remembers what a rule answers.
    pub(super) fn set_reply(&self, reply: Option<RuleReply>) {
        *lock(&self.reply) = reply;
    }

    /// Gives out what a rule answered.
    pub(super) fn take_reply(&self) -> Option<RuleReply> {
        lock(&self.reply).take()
    }

    /// Remembers why a rule has no answer.
    pub(super) fn set_why(&self, why: &str) {
        *lock(&self.why) = Some(why.into());
    }

    /// Gives out why a rule has no answer, where it said so.
    pub(super) fn take_why(&self) -> Option<Box<str>> {
        lock(&self.why).take()
    }

    /// Gives `work` what this thread heard when it asked last.
    pub(super) fn with_heard<T>(&self, work: impl FnOnce(&mut Heard) -> T) -> T {
        let thread = thread::current().id();
        let mut heard = lock(&self.heard);
        let place = heard.iter().position(|(other, _)| *other == thread).unwrap_or_else(|| {
            heard.push((thread, Box::default()));
            heard.len() - 1
        });
        work(&mut heard[place].1)
    }

    /// Lends the importer's state.
    pub(super) fn lend(&self, lent: Lent) {
        *lock(&self.lent) = Some(lent);
    }

    /// Takes what was lent, on the thread that it was lent on.
    pub(super) fn take_lent(&self) -> Option<Lent> {
        lock(&self.lent).take_if(|lent| lent.is_here())
    }

    /// Gives `read` what was lent.
    pub(super) fn with_lent<T>(&self, read: impl FnOnce(&Lent) -> T) -> Option<T> {
        lock(&self.lent).as_ref().map(read)
    }

    /// The same, of an operator that is to make these.
    pub(super) fn with_results(self, results: Option<Results>) -> Self {
        Self { results, ..self }
    }

    /// This call, which hears what an operator takes for granted of dimensions.
    pub(super) fn with_fits(self) -> Self {
        Self { fits: Some(Mutex::default()), ..self }
    }

    /// What the operator took for granted, each once and in order.
    pub(super) fn into_fits(self: Arc<Self>) -> Vec<Fit> {
        let mut fits =
            self.fits.as_ref().map_or_else(Vec::new, |fits| std::mem::take(&mut *lock(fits)));
        let mut seen = FxHashSet::default();
        fits.retain(|&fit| seen.insert(fit));
        fits
    }

    /// What an operator makes, while one is evaluated.
    pub(super) fn results(&self) -> Option<&Results> {
        self.results.as_ref()
    }

    /// How the pass says that it failed; the first time counts.
    pub(super) fn fail(&self, kind: Failure, failure: PassFailure) {
        self.failure.get_or_init(|| (kind, failure));
    }

    /// By which kind of failure.
    pub(super) fn failure_kind(&self) -> Option<Failure> {
        self.failure.get().map(|(kind, _)| *kind)
    }

    /// How the pass says that it failed.
    pub(crate) fn failure(&self) -> Option<&PassFailure> {
        self.failure.get().map(|(_, failure)| failure)
    }

    /// Takes what a code generator made.
    pub(super) fn set_object(&self, bytes: Vec<u8>) {
        *lock(&self.object) = Some(bytes);
    }

    /// Gives out what a code generator made.
    pub(crate) fn take_object(&self) -> Option<Vec<u8>> {
        lock(&self.object).take()
    }

    /// Remembers why a call of this thread failed.
    pub(super) fn set_error(&self, error: &str) {
        let thread = thread::current().id();
        let mut errors = lock(&self.errors);
        match errors.iter_mut().find(|(other, _)| *other == thread) {
            Some((_, text)) => *text = error.into(),
            None => errors.push((thread, error.into())),
        }
    }

    /// Gives `read` why the last call of this thread failed.
    pub(super) fn with_error<T>(&self, read: impl FnOnce(&str) -> T) -> T {
        let thread = thread::current().id();
        let errors = lock(&self.errors);
        read(errors.iter().find(|(other, _)| *other == thread).map_or("", |(_, text)| text))
    }
}

/// Locks; what is behind a poisoned lock is whole, since nothing panics while it is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
