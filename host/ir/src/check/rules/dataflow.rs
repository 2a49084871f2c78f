//! A dataflow block has no effects and no control flow.

use crate::check::{Report, Rule, Subject};
use crate::{Expr, Kind, View};

pub(super) const RULE: Rule = Rule {
    name: "dataflow",
    demands: "a dataflow block has no effects and no control flow",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    if subject.function.is_prim() {
        return;
    }
    // Whether a node is evaluated by a binding of a dataflow block.
    let mut is_inside = vec![false; body.len()];
    let mut found = Vec::new();
    for expr in body.post_order().rev() {
        match body.view(expr) {
            View::Let(view) => {
                for block in view.blocks().iter().filter(|block| block.is_dataflow) {
                    for index in block.first..block.first + block.len {
                        is_inside[view.binding(index).1.index()] = true;
                    }
                }
                continue;
            }
            // A closure's body is evaluated where it is called.
            View::Function { .. } => continue,
            _ if !is_inside[expr.index()] => continue,
            View::If { .. } => found.push((expr, None)),
            View::Call { callee, .. } if subject.purity().is_impure_call(body, expr) => {
                found.push((expr, Some(callee)));
            }
            _ => {}
        }
        for operand in body.operands(expr).iter().filter(|&operand| body.kind(operand) != Kind::VAR)
        {
            is_inside[operand.index()] = true;
        }
    }
    for (expr, callee) in found.into_iter().rev() {
        report.at(expr, || match callee {
            Some(callee) => {
                format!(
                    "{} may have an effect, and is called in a dataflow block",
                    called(subject, callee)
                )
            }
            None => "a choice stands in a dataflow block".to_owned(),
        });
    }
}

fn called(subject: &Subject<'_>, callee: Expr) -> String {
    match subject.body.view(callee) {
        View::Op { name } => format!("`{}`", subject.str(name)),
        View::Global { name } => format!("`@{}`", subject.str(name)),
        View::Extern { name } => format!("the external `{}`", subject.str(name)),
        View::Var { .. } => subject.name_of(callee),
        _ => "what is called here".to_owned(),
    }
}
