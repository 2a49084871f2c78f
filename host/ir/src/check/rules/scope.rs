//! A variable or buffer is read where it is bound: behind its binding, in the same body or inside of it.

use crate::check::scopes::Misuse;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "scope",
    demands: "a variable or buffer is read behind its binding, in the same body or inside of it",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    for (user, used, misuse) in subject.scopes().misuses() {
        report.at(user, || {
            let name = subject.name_of(used);
            match misuse {
                Misuse::Unbound => format!("nothing binds {name}"),
                Misuse::OutOfScope => format!("{name} is read outside of the body that binds it"),
                Misuse::TooEarly => format!("{name} is read before it is bound"),
            }
        });
    }
}
