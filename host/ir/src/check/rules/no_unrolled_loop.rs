//! Behind the passes of the target no loop is still to be unrolled.

use crate::check::{Report, Rule, Subject};
use crate::{Kind, LoopKind, View};

pub(super) const RULE: Rule = Rule {
    name: "no_unrolled_loop",
    demands: "no loop is still to be unrolled",
    since: Some("builtin"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in subject.of_kind(Kind::FOR) {
        if let View::For { kind: LoopKind::Unrolled, .. } = body.view(expr) {
            report.at(expr, || "a loop is still to be unrolled".to_owned());
        }
    }
}
