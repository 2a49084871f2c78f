//! Behind planning memory is made explicitly: no `call_tir`, and no operator that makes a tensor.
//!
//! Operators on shapes have no tensor program: who executes the module computes them.

use crate::check::{Report, Rule, Subject};
use crate::op_names::CALL_TIR;
use crate::ops;
use crate::{Kind, View};

pub(super) const RULE: Rule = Rule {
    name: "explicit_memory",
    demands: "no `call_tir`, and no operator that makes a tensor",
    since: Some("target"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in subject.of_kind(Kind::CALL) {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        // Other operators are legalized before this, or have no tensor program.
        let Some(name) = body.op_name(callee) else { continue };
        if name == CALL_TIR || ops::is_view(subject.module.cx(), name) {
            report.at(expr, || format!("`{name}` is still called, which makes a tensor"));
        }
    }
}
