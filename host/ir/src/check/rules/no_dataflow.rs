//! Behind planning effects have their order: no dataflow block is left.

use crate::check::{Report, Rule, Subject};
use crate::{Kind, View};

pub(super) const RULE: Rule = Rule {
    name: "no_dataflow",
    demands: "no dataflow block",
    since: Some("target"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in subject.of_kind(Kind::LET) {
        if let View::Let(view) = body.view(expr)
            && view.blocks().iter().any(|block| block.is_dataflow)
        {
            report.at(expr, || "a dataflow block is left".to_owned());
        }
    }
}
