//! The module's attribute `phase` names a phase.

use crate::PHASES;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "phase",
    demands: "the module is in a phase that there is",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let phase = subject.module.phase();
    let is_first = subject.module.iter().next().is_some_and(|(name, _)| name == subject.name);
    if is_first && !PHASES.contains(&phase) {
        report.at(subject.body.root(), || {
            format!("the module is in phase \"{phase}\", which is none of {}", PHASES.join(", "))
        });
    }
}
