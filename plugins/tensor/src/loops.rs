//! Reading and rebuilding loops.

use std::collections::HashSet;

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::INTRINSIC;
use tenon_schedule::SETTLED;

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

/// The loops that an instruction computes at once, those of which a schedule says that they stay as they are, and those inside them.
pub(crate) fn settled_loops(body: BodyView<'_>) -> HashSet<Expr> {
    let mut inside = HashSet::new();
    // The loops that are open from the outermost settled one on.
    let mut open = 0;
    for step in body.walk(body.root()) {
        match step {
            Walk::Enter(stmt) => {
                let View::For { attrs, .. } = body.view(stmt) else { continue };
                if open > 0 || says_settled(body, attrs) {
                    open += 1;
                    inside.insert(stmt);
                }
            }
            Walk::Leave(stmt) if open > 0 && body.kind(stmt) == Kind::FOR => open -= 1,
            Walk::Leave(_) => {}
        }
    }
    inside
}

/// Whether the attributes of a loop say that it and those inside it stay as they are.
pub(crate) fn says_settled(body: BodyView<'_>, attrs: Attrs) -> bool {
    if attrs == Attrs::NONE {
        return false;
    }
    let attrs = body.terms().attrs(attrs);
    attrs.str(INTRINSIC).is_some() || attrs.bool(SETTLED) == Some(true)
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
