//! The well-formed checker: what holds of every module, and what each phase promises the next.
//!
//! One rule is one file under `rules`. A rule reads, and reports every place that breaks it; it changes
//! nothing and repairs nothing. Rules of one function see that function and the signatures of its siblings, so
//! after a pass only the functions that it changed are looked at again. Each rule is linear in the nodes.

mod purity;
mod rules;
mod scopes;

use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

use purity::Purity;
use scopes::Scopes;

use crate::diagnostics::{Diagnostic, Source};
use crate::parallel;
use crate::text::point_at;
use crate::{BodyView, Expr, Function, Kind, Module, PHASES, Symbol, Type};

/// A rule: its name in messages, and what it demands.
pub struct Rule {
    /// Its name: that of its file under `rules` and of its folder of fixtures.
    pub name: &'static str,
    /// What it demands, in one sentence.
    pub demands: &'static str,
    /// The phase from which on it holds; always when there is none.
    pub since: Option<&'static str>,
    /// The last phase in which it holds; the last of all when there is none.
    pub until: Option<&'static str>,
    check: fn(&Subject<'_>, &mut Report),
}

/// All rules, in the order they are checked. The first says that nodes have the parts of their kind; the others
/// are for functions of which it holds.
pub fn rules() -> &'static [Rule] {
    rules::ALL
}

/// A place that breaks a rule.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule's name.
    pub rule: &'static str,
    /// The function.
    pub function: Symbol,
    /// The function's body, which `node` is a node of.
    pub body: Arc<Function>,
    /// The node.
    pub node: Expr,
    /// What is wrong, in one sentence without a full stop.
    pub problem: String,
}

impl Violation {
    /// The violation as a person reads it, with the lines of the function around its node.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let name = self.body.view().terms().str(self.function);
        match point_at(format!("@{name}"), name, &self.body, self.node) {
            Some((source, place)) => self.with_source().in_source(&source).label(place, ""),
            None => self.with_source(),
        }
    }

    /// The same, underlined where the node stands in the text that the module was parsed from.
    pub fn in_text(&self, source: &Arc<Source>) -> Diagnostic {
        match self.body.cx().offset_of(self.body.view().source(self.node)) {
            Some(at) => self.message().in_source(source).label(source.word_at(at), ""),
            None => self.to_diagnostic(),
        }
    }

    /// The message, and what the node came from.
    fn with_source(&self) -> Diagnostic {
        match self.body.source_text(self.node) {
            Some(from) => self.message().note(format!("from {from}")),
            None => self.message(),
        }
    }

    fn message(&self) -> Diagnostic {
        let name = self.body.view().terms().str(self.function);
        let rule = rules().iter().find(|rule| rule.name == self.rule);
        let demands = rule.map_or("", |rule| rule.demands);
        Diagnostic::error(format!("@{name}: {}", self.problem))
            .note(format!("rule `{}`: {demands}", self.rule))
    }
}

/// Everything in a module that breaks a rule: functions in order, rules in order, nodes in order. Of one rule
/// in one function at most [`PER_RULE`] places.
pub fn check(module: &Module) -> Vec<Violation> {
    check_where(module, is_kept_in(module.phase()), |_, _| true)
}

/// What keeps a module from being in a phase: what breaks a rule that holds in it, and not in all phases.
pub fn check_phase(module: &Module, phase: &str) -> Vec<Violation> {
    let is_kept = is_kept_in(phase);
    match rules().iter().any(|rule| rule.since.is_some() && is_kept(rule)) {
        true => check_where(module, |rule| rule.since.is_some() && is_kept(rule), |_, _| true),
        false => Vec::new(),
    }
}

/// As [`check`], for what differs from `before`, a module that keeps all rules. All functions when the phase
/// differs, because other rules hold, or when a function is gone or has another type, because of those that call it.
pub fn check_changed(before: &Module, module: &Module) -> Vec<Violation> {
    if module.is_identical(before) {
        return Vec::new();
    }
    let same_rules = before.phase() == module.phase();
    let is_callable_as_before = |(name, old): (Symbol, &Arc<Function>)| {
        module.get(name).is_some_and(|new| Arc::ptr_eq(old, new) || type_of(old) == type_of(new))
    };
    let is_enough = same_rules && before.iter().all(is_callable_as_before);
    check_where(module, is_kept_in(module.phase()), |name, function| {
        !(is_enough && before.get(name).is_some_and(|old| Arc::ptr_eq(old, function)))
    })
}

/// What a function is for those that call it: its type, and of what kind it is.
fn type_of(function: &Function) -> (Option<Type>, Kind) {
    let body = function.view();
    (body.ty(body.root()), body.kind(body.root()))
}

/// What is wrong with the first node that has not the parts of its kind.
pub fn broken_part(function: &Arc<Function>) -> Option<String> {
    check_parts(function).into_iter().next().map(|(_, _, problem)| problem)
}

fn check_parts(function: &Arc<Function>) -> Vec<(&'static str, Expr, String)> {
    if function.parts.are_right() {
        return Vec::new();
    }
    let broken = check_rule(&rules::ALL[0], |report| rules::check_parts(function, report));
    if broken.is_empty() {
        function.parts.set_right();
    }
    broken
}

/// So many places are reported of one rule in one function.
pub const PER_RULE: usize = 20;

/// Whether a rule holds in a phase.
fn is_kept_in(phase: &str) -> impl Fn(&Rule) -> bool + Sync + Copy {
    let phase = phase_number(phase);
    move |rule| {
        rule.since.is_none_or(|since| phase >= phase_number(since))
            && rule.until.is_none_or(|until| phase <= phase_number(until))
    }
}

fn check_where(
    module: &Module,
    is_asked: impl Fn(&Rule) -> bool + Sync,
    is_wanted: impl Fn(Symbol, &Arc<Function>) -> bool,
) -> Vec<Violation> {
    let purity = OnceLock::new();
    let wanted: Vec<(Symbol, &Arc<Function>)> =
        module.iter().filter(|(name, function)| is_wanted(*name, function)).collect();
    let violations = parallel::map(&wanted, |&(name, function)| {
        check_function(module, name, function, &is_asked, &purity)
    });
    violations.into_iter().flatten().collect()
}

fn check_function(
    module: &Module,
    name: Symbol,
    function: &Arc<Function>,
    is_asked: impl Fn(&Rule) -> bool,
    purity: &OnceLock<Purity>,
) -> Vec<Violation> {
    let mut broken = check_parts(function);
    if broken.is_empty() {
        let (body, scopes) = (function.view(), OnceCell::new());
        let subject = Subject { module, name, function, body, scopes, purity };
        for rule in rules::ALL[1..].iter().filter(|rule| is_asked(rule)) {
            broken.extend(check_rule(rule, |report| (rule.check)(&subject, report)));
        }
    }
    let violation = |(rule, node, problem)| Violation {
        rule,
        function: name,
        body: function.clone(),
        node,
        problem,
    };
    broken.into_iter().map(violation).collect()
}

fn check_rule(rule: &Rule, check: impl FnOnce(&mut Report)) -> Vec<(&'static str, Expr, String)> {
    let mut report = Report::default();
    check(&mut report);
    report.found.into_iter().map(|(node, problem)| (rule.name, node, problem)).collect()
}

/// A name that is no phase counts as the first one; that it is none is said by the rule `phase`.
fn phase_number(phase: &str) -> usize {
    PHASES.iter().position(|&other| other == phase).unwrap_or(0)
}

/// What a rule looks at: a function whose nodes have the parts of their kinds.
struct Subject<'a> {
    module: &'a Module,
    name: Symbol,
    function: &'a Arc<Function>,
    body: BodyView<'a>,
    scopes: OnceCell<Scopes>,
    purity: &'a OnceLock<Purity>,
}

impl<'a> Subject<'a> {
    /// The nodes of a kind: most rules are about one, and need not take the others apart.
    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = Expr> + 'a {
        let body = self.body;
        body.post_order().filter(move |&expr| body.kind(expr) == kind)
    }

    /// What is bound where, found when a rule asks.
    fn scopes(&self) -> &Scopes {
        self.scopes.get_or_init(|| Scopes::of(self.body))
    }

    /// Which functions of the module have effects, found when a rule asks.
    fn purity(&self) -> &Purity {
        self.purity.get_or_init(|| Purity::of(self.module))
    }

    /// A symbol's text.
    fn str(&self, symbol: Symbol) -> &'a str {
        self.body.terms().str(symbol)
    }

    /// The name of a variable or buffer as it is written.
    fn name_of(&self, binder: Expr) -> String {
        format!("`%{}`", self.str(Symbol(self.body.raw_node(binder).data)))
    }

    /// A node's type as it is written.
    fn type_text(&self, ty: Option<Type>) -> String {
        ty.map_or_else(|| "no type".to_owned(), |ty| self.body.terms().type_text(ty))
    }
}

/// Collects the places that break one rule.
#[derive(Default)]
struct Report {
    found: Vec<(Expr, String)>,
}

impl Report {
    /// Reports a place; `problem` is made only when it will be shown.
    fn at(&mut self, node: Expr, problem: impl FnOnce() -> String) {
        if self.found.len() < PER_RULE {
            self.found.push((node, problem()));
        }
    }
}
