//! The kinds of loops are such that lowering can follow.
//!
//! Primitives of schedules keep to this; it is for what passes and people write.

use crate::check::{Report, Rule, Subject};
use crate::ir::{BodyView, Expr, Kind, LoopKind, View, Walk};

pub(super) const RULE: Rule = Rule {
    name: "scheduled",
    demands: "loops whose steps are lanes have a constant number of them, and parallel loops do not nest",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let root = body.root();
    if body.kind(root) != Kind::PRIM_FUNC {
        return;
    }
    let mut parallel = 0;
    for step in body.walk(root) {
        let (expr, is_entered) = match step {
            Walk::Enter(expr) => (expr, true),
            Walk::Leave(expr) => (expr, false),
        };
        let View::For { kind, extent, .. } = body.view(expr) else { continue };
        match (kind, is_entered) {
            (LoopKind::Parallel, true) => {
                if parallel > 0 {
                    report.at(expr, || "a parallel loop stands within another".to_owned());
                }
                parallel += 1;
            }
            (LoopKind::Parallel, false) => parallel -= 1,
            (LoopKind::Vectorized, true) if !is_constant(body, extent) => {
                report.at(expr, || {
                    format!(
                        "a loop is {}, and the number of its steps is not constant",
                        kind.text()
                    )
                });
            }
            _ => {}
        }
    }
}

/// Whether a number is made of integers alone.
fn is_constant(body: BodyView<'_>, number: Expr) -> bool {
    let mut stack = vec![number];
    while let Some(expr) = stack.pop() {
        match body.view(expr) {
            View::Int(_) => {}
            View::Prim { dim } if body.terms().dim_value(dim).is_some() => {}
            View::Binary { a, b, .. } => stack.extend([a, b]),
            View::Cast { value, .. } => stack.push(value),
            _ => return false,
        }
    }
    true
}
