//! Behind planning nothing that may have an effect is called with the promise that it has none.

use crate::check::{Report, Rule, Subject};
use crate::op_names::CALL_PURE;
use crate::{Kind, View};

pub(super) const RULE: Rule = Rule {
    name: "no_call_pure",
    demands: "no `call_pure`",
    since: Some("target"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in subject.of_kind(Kind::CALL) {
        if let View::Call { callee, .. } = body.view(expr)
            && body.op_name(callee) == Some(CALL_PURE)
        {
            report.at(expr, || format!("`{CALL_PURE}` is still called, which may be moved"));
        }
    }
}
