//! Reading and rebuilding loops.

use tenon_plugin_api::prelude::*;

/// The number of steps of a loop, when it is a constant.
pub(crate) fn constant_extent(body: BodyView<'_>, stmt: Expr) -> Option<i64> {
    match body.view(stmt) {
        View::For { extent, .. } => match body.view(extent) {
            View::Int(steps) => Some(steps),
            _ => None,
        },
        _ => None,
    }
}

/// The variable that a loop or a `let` binds; its place is never replaced.
pub(crate) fn bound_variable(body: BodyView<'_>, stmt: Expr) -> Expr {
    body.operands_keeping_binders(stmt).next().expect("a statement that binds has a variable")
}

/// A copy of a loop that runs in another way.
pub(crate) fn with_kind(rw: &mut Rewriter, stmt: Expr, kind: LoopKind) -> Expr {
    let spec = NodeSpec { data: kind as u32, ..rw.body().spec(stmt) };
    let operands: Vec<Expr> = rw.body().operands_keeping_binders(stmt).collect();
    rw.push(spec, &operands)
}
