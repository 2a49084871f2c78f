//! Behind the passes of the target a buffer is accessed at one index, which counts its elements.

use crate::View;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "flat_buffers",
    demands: "a buffer is accessed at one index",
    since: Some("builtin"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in body.post_order() {
        let (View::Load { indices, .. } | View::Store { indices, .. }) = body.view(expr) else {
            continue;
        };
        if indices.len() > 1 {
            report.at(expr, || format!("a buffer is accessed with {} indices", indices.len()));
        }
    }
}
