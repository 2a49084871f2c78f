//! Behind ingestion values lie where their function runs, and no type says it.

use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "placed",
    demands: "values lie on the device of their function's target, and no type names one",
    since: Some("optimize"),
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let mut last = None;
    for expr in body.post_order() {
        // Nodes of one type often follow each other.
        if let Some(ty) = body.ty(expr)
            && last.replace(ty) != Some(ty)
            && let Some(&device) = body.terms().devices(ty).first()
        {
            let device = body.terms().str(device);
            report.at(expr, || format!("its type says that it lies on {device}"));
            // What it is computed from and what is computed of it lie there as well.
            return;
        }
    }
}
