//! Behind planning effects have their order: no dataflow block is left.

use crate::View;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "no_dataflow",
    demands: "no dataflow block",
    since: Some("target"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in body.post_order() {
        if let View::Let(view) = body.view(expr)
            && view.blocks().iter().any(|block| block.is_dataflow)
        {
            report.at(expr, || "a dataflow block is left".to_owned());
        }
    }
}
