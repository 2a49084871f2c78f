//! What comes of operators says what is computed and not how it runs, so that whatever fuses, schedules or tunes it finds all programs
//! in one form.
//!
//! It is about the programs of operators, which say which one in their attribute `op_name`. One that somebody wrote, or scheduled
//! before, is as its author wants it.

use crate::check::{Report, Rule, Subject};
use crate::{BodyView, Expr, Kind, LoopKind, View};

pub(super) const RULE: Rule = Rule {
    name: "compute_form",
    demands: "the program of an operator says what is computed, and leaves to schedules how it runs",
    since: Some("fuse"),
    until: Some("fuse"),
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let attrs = body.terms().attrs(body.attrs(body.root()));
    let is_of_operator = attrs.str("op_name").is_some() && attrs.str("trace").is_none();
    if body.kind(body.root()) != Kind::PRIM_FUNC || !is_of_operator {
        return;
    }
    for expr in body.post_order() {
        if let Some(what) = scheduled(body, expr) {
            report.at(expr, || format!("{what}, which is for a schedule to say"));
        }
    }
}

/// What a node says of how the program runs.
fn scheduled(body: BodyView<'_>, expr: Expr) -> Option<String> {
    match body.view(expr) {
        View::For { kind: LoopKind::Serial, .. } => None,
        View::For { kind, .. } => Some(format!("a loop is {}", kind.text())),
        View::Ramp { .. } | View::Broadcast { .. } => Some("a value has several lanes".to_owned()),
        _ => None,
    }
}
