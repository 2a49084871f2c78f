//! Conditions of statements, further out.
//!
//! ```ir
//! for k in 0..8 {                           if i < n {
//!   if i < n { a[k] = 0.0 }                   for k in 0..8 {
//!   if i < n { b[k] = 1.0 }            =>       a[k] = 0.0
//! }                                             b[k] = 1.0
//!                                             }
//!                                           }
//! ```
//!
//! So what is guarded by none stays in registers within a loop, and loops of vectors have no branches.

use std::collections::HashSet;

use tenon_plugin_api::prelude::*;

use crate::loops::bound_variable;

/// Nodes of a condition that is looked at, which is done in each loop around it.
const MOST: usize = 64;

/// A condition outside of a loop that does not change it; one of several lanes leaves loops over lanes where they are.
pub(crate) fn around_loop(rw: &mut Rewriter, stmt: Expr, inner: Expr) -> Option<Expr> {
    let body = rw.body();
    let View::IfStmt { cond, then, otherwise: None } = body.view(inner) else { return None };
    let is_mask = body.scalar_ty(cond).is_some_and(|(_, lanes)| lanes > 1);
    match body.view(stmt) {
        View::For { kind: LoopKind::Serial | LoopKind::Unrolled, .. } => {}
        View::For { kind: LoopKind::Vectorized, .. } if !is_mask => {}
        _ => return None,
    }
    if !is_known_outside(body, cond, Some(bound_variable(body, stmt))) {
        return None;
    }
    let mut operands: Vec<Expr> = body.operands_keeping_binders(stmt).collect();
    *operands.last_mut()? = then;
    let spec = body.spec(stmt);
    let each = rw.push(spec, &operands);
    Some(rw.if_stmt(cond, each, None))
}

/// One condition around a sequence all of whose statements have it, but for those that make buffers.
pub(crate) fn around_all(rw: &mut Rewriter, stmt: Expr) -> Option<Expr> {
    let body = rw.body();
    let View::Seq(stmts) = body.view(stmt) else { return None };
    let (mut common, mut inside) = (None, Vec::new());
    for stmt in stmts.iter() {
        match body.view(stmt) {
            View::IfStmt { cond, then, otherwise: None } => {
                if !is_same(body, *common.get_or_insert(cond), cond) {
                    return None;
                }
                inside.push(then);
            }
            _ if body.kind(stmt) == Kind::ALLOC => inside.push(stmt),
            _ => return None,
        }
    }
    // What the first statement writes must not decide about the second.
    let cond = common.filter(|&cond| is_known_outside(body, cond, None))?;
    let all = rw.seq(&inside);
    Some(rw.if_stmt(cond, all, None))
}

/// Whether two conditions of few nodes are written in the same way.
fn is_same(body: BodyView<'_>, a: Expr, b: Expr) -> bool {
    let (mut stack, mut steps) = (vec![[a, b]], 0);
    while let Some([a, b]) = stack.pop() {
        steps += 1;
        let is_fine = match (body.view(a), body.view(b)) {
            _ if a == b => true,
            (View::Binary { op, a, b }, View::Binary { op: other, a: c, b: d }) => {
                stack.extend([[a, c], [b, d]]);
                op == other
            }
            (View::Int(a), View::Int(b)) => a == b,
            (View::Prim { dim: a }, View::Prim { dim: b }) => a == b,
            _ => false,
        };
        if !is_fine || steps > MOST {
            return false;
        }
    }
    true
}

/// Whether a scalar of few nodes is the same in each step of a loop over `var`, and may be computed where there is none: it reads no
/// memory and cannot fail.
fn is_known_outside(body: BodyView<'_>, scalar: Expr, var: Option<Expr>) -> bool {
    let (mut stack, mut seen) = (vec![scalar], HashSet::new());
    while let Some(expr) = stack.pop() {
        let is_fine = match body.view(expr) {
            View::Var { .. } => Some(expr) != var,
            View::Binary {
                op: BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorMod, b, ..
            } => {
                matches!(body.view(b), View::Int(divisor) if divisor != 0)
            }
            View::Int(_) | View::Float(_) | View::Prim { .. } | View::Binary { .. } => true,
            View::Ramp { .. } | View::Broadcast { .. } | View::Select { .. } => true,
            _ => false,
        };
        if !is_fine || seen.len() > MOST {
            return false;
        }
        if seen.insert(expr) {
            stack.extend(body.operands(expr).iter());
        }
    }
    true
}
