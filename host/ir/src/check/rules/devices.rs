//! The devices that types name are known. That what an operator reads lies on one is a matter of types.

use tenon_plugin_api::ir::device_problem;

use crate::Symbol;
use crate::check::{Report, Rule, Subject};

pub(super) const RULE: Rule = Rule {
    name: "devices",
    demands: "the devices that types name are known",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let mut told: Vec<Symbol> = Vec::new();
    for expr in body.post_order() {
        let Some(ty) = body.ty(expr) else { continue };
        for device in body.terms().devices(ty) {
            if let Some(problem) = device_problem(body.terms().str(device))
                && !told.contains(&device)
            {
                told.push(device);
                report.at(expr, || problem);
            }
        }
    }
}
