//! A variable or buffer is bound at one place.

use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "bound_once",
    demands: "a variable or buffer is bound at one place",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    for &(binder, bound) in subject.scopes().bound_twice() {
        report.at(binder, || format!("{} is bound at another place too", subject.name_of(bound)));
    }
}
