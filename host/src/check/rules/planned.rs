//! Behind planning memory is made explicitly and effects have their order: no dataflow blocks, no `call_tir`, no
//! `call_pure`, no operators on tensors.

use crate::check::{Report, Rule, Subject};
use crate::ir::View;
use crate::ops;
use crate::ops::core::compiler::{CALL_PURE, CALL_TIR};

pub(super) const RULE: Rule = Rule {
    name: "planned",
    demands: "no dataflow block, no `call_tir` or `call_pure`, no operator that has a tensor program",
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
                // Operators on shapes have no tensor program: who executes the module computes them.
                let computes = ops::find(name).is_some_and(|op| op.legalize.is_some());
                if name == CALL_PURE {
                    report.at(expr, || format!("`{name}` is still called, which may be moved"));
                } else if name == CALL_TIR || computes {
                    report.at(expr, || format!("`{name}` is still called, which makes a tensor"));
                }
            }
            _ => {}
        }
    }
}
