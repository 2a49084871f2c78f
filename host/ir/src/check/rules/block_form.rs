//! Behind ingestion functions are in block form: calls and projections are bound, and operands are variables,
//! leaves, or tuples of them.

use crate::check::{Report, Rule, Subject};
use crate::{Kind, View};

pub(super) const RULE: Rule = Rule {
    name: "block_form",
    demands: "calls and projections are bound, and operands are variables, leaves, or tuples of them",
    since: Some("optimize"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    if subject.function.is_prim() {
        return;
    }
    let is_atom = |kind: Kind| {
        kind.is_leaf_value() || matches!(kind, Kind::VAR | Kind::TUPLE | Kind::FUNCTION)
    };
    for expr in body.post_order() {
        let bound = match body.view(expr) {
            View::Let(view) => 2 * view.len(),
            _ => 0,
        };
        let is_function = body.kind(expr) == Kind::FUNCTION;
        for operand in body.operands(expr).skip(bound).iter() {
            let kind = body.kind(operand);
            if !is_atom(kind)
                && !(kind == Kind::LET && (is_function || body.kind(expr) == Kind::IF))
            {
                report.at(operand, || format!("a {} is not bound to a variable", kind.name()));
            }
        }
    }
}
