//! Behind ingestion no function stands within another.

use crate::Kind;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "closed",
    demands: "no function stands within another",
    since: Some("optimize"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in body.post_order().filter(|&expr| expr != body.root()) {
        if body.kind(expr) == Kind::FUNCTION {
            report.at(expr, || "a function stands within another".to_owned());
        }
    }
}
