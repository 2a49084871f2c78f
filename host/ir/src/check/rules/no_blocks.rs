//! Behind the passes of the target tensor programs are loops over statements: no block is left.

use crate::Kind;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "no_blocks",
    demands: "tensor programs have no blocks",
    since: Some("builtin"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    for expr in subject.of_kind(Kind::BLOCK) {
        report.at(expr, || "a block is left".to_owned());
    }
}
