//! The type of each node is the one that its operands give. Of nodes that have a wrong type because another one has, the
//! first is told.

use std::sync::Arc;

use crate::check::{Report, Rule, Subject};
use crate::infer::{infer, signature};
use crate::{Expr, Kind, SideTable, View};

pub(super) const RULE: Rule = Rule {
    name: "types",
    demands: "the type of each node is the one that its operands give",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let signatures = |name| subject.module.get(name).and_then(|callee| signature(callee));
    let inferred = match infer(subject.function, &signatures) {
        Ok(inferred) => inferred,
        Err(errors) => {
            for error in errors {
                report.at(error.node, || error.to_string());
            }
            return;
        }
    };
    if Arc::ptr_eq(&inferred, subject.function) {
        return;
    }
    let mut value_of = SideTable::new(body, None);
    for expr in subject.of_kind(Kind::LET) {
        if let View::Let(bindings) = body.view(expr) {
            bindings.bindings().for_each(|(var, value)| value_of[var] = Some(value));
        }
    }
    let is_wrong = |expr: Expr| body.ty(expr) != inferred.view().ty(expr);
    let is_first = |expr: &Expr| {
        let mut causes = body.operands(*expr).iter().chain(value_of[*expr]);
        is_wrong(*expr) && !causes.any(is_wrong)
    };
    for expr in body.post_order().filter(is_first) {
        report.at(expr, || {
            let [found, wanted] = [body.ty(expr), inferred.view().ty(expr)];
            let [found, wanted] = [found, wanted].map(|ty| subject.type_text(ty));
            format!("a {} has {found}, but its operands give {wanted}", body.kind(expr).name())
        });
    }
}
