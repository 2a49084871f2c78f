//! Behind planning memory is made explicitly: no dataflow blocks, no `call_tir`, no operators on tensors.

use crate::check::{Report, Rule, Subject};
use crate::ir::View;
use crate::ops;
use crate::ops::core::compiler::CALL_TIR;

pub(super) const RULE: Rule = Rule {
    name: "planned",
    demands: "no dataflow block, no `call_tir`, no operator that computes a tensor",
    since: Some("target"),
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in body.post_order() {
        match body.view(expr) {
            View::Let(view) if view.blocks().iter().any(|block| block.is_dataflow) => {
                report.at(expr, || "a dataflow block is left".to_owned());
            }
            View::Call { callee, .. } => {
                let Some(name) = body.op_name(callee) else { continue };
                let computes = ops::find(name).is_some_and(|op| op.evaluate.is_some());
                if name == CALL_TIR || computes {
                    report.at(expr, || format!("`{name}` is still called, which makes a tensor"));
                }
            }
            _ => {}
        }
    }
}
