//! Behind the passes of the target tensor programs are loops over statements: no block is left.

use crate::View;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "no_blocks",
    demands: "tensor programs have no blocks",
    since: Some("builtin"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in body.post_order() {
        if let View::Block(_) = body.view(expr) {
            report.at(expr, || "a block is left".to_owned());
        }
    }
}
