//! Behind the target's passes tensor programs are loops over elements: no blocks, no loops to be
//! vectorized or unrolled, and one index an access.

use crate::check::{Report, Rule, Subject};
use crate::ir::{LoopKind, View};

pub(super) const RULE: Rule = Rule {
    name: "target",
    demands: "tensor programs have no blocks, no loops to be vectorized or unrolled, and one index an access",
    since: Some("builtin"),
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in body.post_order() {
        match body.view(expr) {
            View::Block(_) => report.at(expr, || "a block is left".to_owned()),
            View::Load { indices, .. } | View::Store { indices, .. } if indices.len() > 1 => {
                report.at(expr, || format!("a buffer is accessed with {} indices", indices.len()));
            }
            View::For { kind: kind @ (LoopKind::Vectorized | LoopKind::Unrolled), .. } => {
                report.at(expr, || format!("a loop is still to be {}", kind.text()));
            }
            _ => {}
        }
    }
}
