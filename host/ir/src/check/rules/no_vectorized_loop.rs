//! Behind the passes of the target no loop is still to be vectorized.

use crate::check::{Report, Rule, Subject};
use crate::{Kind, LoopKind, View};

pub(super) const RULE: Rule = Rule {
    name: "no_vectorized_loop",
    demands: "no loop is still to be vectorized",
    since: Some("builtin"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in subject.of_kind(Kind::FOR) {
        if let View::For { kind: LoopKind::Vectorized, .. } = body.view(expr) {
            report.at(expr, || "a loop is still to be vectorized".to_owned());
        }
    }
}
