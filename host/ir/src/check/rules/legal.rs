//! Behind legalization what computes is a tensor program: no operator is left that has one.

use crate::check::{Report, Rule, Subject};
use crate::ops;
use crate::{Kind, View};

pub(super) const RULE: Rule = Rule {
    name: "legal",
    demands: "no operator is called that has a tensor program",
    since: Some("fuse"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in subject.of_kind(Kind::CALL) {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let Some(name) = body.op_name(callee) else { continue };
        let cx = subject.module.cx();
        if ops::has_program(cx, name) && !ops::is_view(cx, name) {
            report.at(expr, || format!("`{name}` is still called, not its tensor program"));
        }
    }
}
