//! A program that was scheduled is one that can be lowered: what primitives refuse, no pass behind them makes.
//!
//! It is about programs with the attribute `trace`. What somebody wrote runs as its author says, and what of that has no code is
//! told by whoever makes code.

use crate::check::{Report, Rule, Subject};
use crate::{BodyView, Expr, Kind, LoopKind, View, Walk};

pub(super) const RULE: Rule = Rule {
    name: "scheduled",
    demands: "a program that was scheduled has lanes and copies of a constant number, and one level of loops on threads",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let attrs = body.terms().attrs(body.attrs(body.root()));
    if body.kind(body.root()) != Kind::PRIM_FUNC || attrs.str("trace").is_none() {
        return;
    }
    // How many loops on threads are open.
    let mut parallel = 0;
    for step in body.walk(body.root()) {
        let (stmt, is_open) = match step {
            Walk::Enter(stmt) => (stmt, true),
            Walk::Leave(stmt) => (stmt, false),
        };
        let View::For { kind, extent, .. } = body.view(stmt) else { continue };
        match (kind, is_open) {
            (LoopKind::Parallel, true) => {
                parallel += 1;
                if parallel > 1 {
                    report.at(stmt, || "a loop on threads stands in another one".to_owned());
                }
            }
            (LoopKind::Parallel, false) => parallel -= 1,
            (LoopKind::Vectorized | LoopKind::Unrolled, true) if !is_constant(body, extent) => {
                report.at(stmt, || {
                    format!("a loop is {}, and its number of steps is not constant", kind.text())
                });
            }
            (
                LoopKind::Serial
                | LoopKind::Vectorized
                | LoopKind::Unrolled
                | LoopKind::ThreadBound,
                _,
            ) => {}
        }
    }
}

/// Whether an extent is a number, which a dimension may be as well.
fn is_constant(body: BodyView<'_>, extent: Expr) -> bool {
    match body.view(extent) {
        View::Int(_) => true,
        View::Prim { dim } => body.terms().dim_value(dim).is_some(),
        _ => false,
    }
}
