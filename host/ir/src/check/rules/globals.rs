//! A function that is named is in the module, and one that has a link name has that of its own.

use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "globals",
    demands: "functions that are named exist, and `global_symbol` is a text",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for (expr, name) in body.globals() {
        if subject.module.get(name).is_none() {
            report.at(expr, || {
                format!("there is no function `@{}` in the module", subject.str(name))
            });
        }
    }
    let attrs = body.terms().attrs(body.attrs(body.root()));
    if attrs.term("global_symbol").is_some() && attrs.str("global_symbol").is_none() {
        report.at(body.root(), || "`global_symbol` is not a text".to_owned());
    }
}
