//! The type of each node is the one that its operands give.

use std::sync::Arc;

use crate::check::{Report, Rule, Subject};
use crate::infer::{infer, signature};

pub(super) const RULE: Rule = Rule {
    name: "types",
    demands: "the type of each node is the one that its operands give",
    since: None,
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
    for expr in body.post_order() {
        let (found, wanted) = (body.ty(expr), inferred.view().ty(expr));
        if found != wanted {
            report.at(expr, || {
                let (found, wanted) = (subject.type_text(found), subject.type_text(wanted));
                format!("a {} has {found}, but its operands give {wanted}", body.kind(expr).name())
            });
        }
    }
}
