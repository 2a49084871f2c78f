//! Whether a node has the shape that the text can say.

use crate::{BodyView, Expr, Kind, LoopKind, Term, TermKind, TermView, View};

/// Whether a node must be written with numbers instead of names: a kind that this build does not know, a
/// kind that has no place in this kind of function, or a payload that the text has no room for.
pub(super) fn is_raw(body: BodyView<'_>, expr: Expr) -> bool {
    let node = body.raw_node(expr);
    let kind = Kind(node.kind);
    let terms = body.terms();
    if matches!(kind, Kind::VAR | Kind::BUFFER) {
        return false;
    }
    let has_attrs =
        matches!(kind, Kind::CALL | Kind::FUNCTION | Kind::PRIM_FUNC | Kind::FOR | Kind::BLOCK);
    let flags = match kind {
        Kind::FUNCTION | Kind::PRIM_FUNC => 1,
        Kind::BLOCK => 7,
        _ => 0,
    };
    let has_aux = matches!(kind, Kind::FOR | Kind::BLOCK);
    if node.flags & !flags != 0
        || (node.aux != 0 && !has_aux)
        || (node.attrs != 0 && (!has_attrs || terms.kind(Term(node.attrs)) != TermKind::DICT))
    {
        return true;
    }
    let is_plain = match body.kind(body.root()) == Kind::PRIM_FUNC {
        true => is_plain_prim(body, expr),
        false => is_plain_graph(body, expr),
    };
    !is_plain
}

fn is_plain_graph(body: BodyView<'_>, expr: Expr) -> bool {
    let node = body.raw_node(expr);
    let terms = body.terms();
    let is_var = |expr: Expr| body.kind(expr) == Kind::VAR;
    match body.view(expr) {
        View::Constant(_) | View::Global { .. } | View::Op { .. } | View::Extern { .. } => true,
        View::TupleGetItem { .. } => true,
        View::Tuple(_) | View::Call { .. } | View::If { .. } => node.data == 0,
        View::Let(view) => {
            let blocks: usize = view.blocks().iter().map(|block| block.len).sum();
            blocks == view.len() && view.bindings().all(|(var, _)| is_var(var))
        }
        View::Function { params, .. } => params.iter().all(is_var),
        View::Shape { ty } => terms.kind(ty) == TermKind::SHAPE,
        View::Prim { dim } => is_dim(terms.kind(dim)),
        _ => false,
    }
}

fn is_dim(kind: TermKind) -> bool {
    kind == TermKind::INT || (TermKind::DIM_SYMBOL.0..=TermKind::DIM_MAX.0).contains(&kind.0)
}

fn is_plain_prim(body: BodyView<'_>, expr: Expr) -> bool {
    let node = body.raw_node(expr);
    let terms = body.terms();
    let is_var = |expr: Expr| body.kind(expr) == Kind::VAR;
    let is_buffer = |expr: Expr| body.kind(expr) == Kind::BUFFER;
    let has_scalar_type = body.ty(expr).is_some_and(|ty| terms.kind(ty) == TermKind::SCALAR);
    match body.view(expr) {
        View::PrimFunc { params, body: inner, .. } => {
            params.iter().all(|param| is_var(param) || is_buffer(param)) && is_stmt(body, inner)
        }
        View::For { var, body: inner, kind, .. } => {
            is_var(var) && is_stmt(body, inner) && (node.aux == 0 || kind == LoopKind::ThreadBound)
        }
        View::Block(block) => {
            let is_region = |expr: Expr| body.kind(expr) == Kind::REGION && !is_raw(body, expr);
            let names = block.iter_kinds.iter();
            block.iters.iter().step_by(2).all(is_var)
                && names.copied().all(|kind| matches!(terms.view(kind), TermView::Str(_)))
                && block.reads.iter().chain(block.writes.iter()).all(is_region)
                && block.init.iter().chain([&block.body]).all(|&stmt| is_stmt(body, stmt))
        }
        View::Seq(stmts) => node.data == 0 && stmts.iter().all(|stmt| is_stmt(body, stmt)),
        View::IfStmt { then, otherwise, .. } => {
            node.data == 0 && [then].into_iter().chain(otherwise).all(|stmt| is_stmt(body, stmt))
        }
        View::Region { buffer, ranges } => {
            node.data == 0 && is_buffer(buffer) && ranges.len().is_multiple_of(2)
        }
        View::Store { buffer, .. } | View::Load { buffer, .. } | View::Alloc { buffer } => {
            node.data == 0 && is_buffer(buffer)
        }
        View::LetStmt { var, .. } => node.data == 0 && is_var(var),
        View::Evaluate { .. } | View::Select { .. } | View::Call { .. } => node.data == 0,
        View::Cast { .. } => node.data == 0 && has_scalar_type,
        View::Ramp { .. } | View::Broadcast { .. } => node.data == 0 && has_scalar_type,
        View::Int(_) => terms.kind(Term(node.data)) == TermKind::INT,
        View::Float(_) => terms.kind(Term(node.data)) == TermKind::FLOAT,
        View::Prim { dim } => is_dim(terms.kind(dim)),
        View::Binary { .. } | View::Intrinsic { .. } => true,
        View::Constant(_) | View::Global { .. } | View::Extern { .. } => true,
        _ => false,
    }
}

fn is_stmt(body: BodyView<'_>, expr: Expr) -> bool {
    may_be_stmt(body.kind(expr))
}

/// Whether nodes of this kind may stand as statements: so may those of a kind that this build does not know.
pub(in crate::text) fn may_be_stmt(kind: Kind) -> bool {
    kind.is_stmt() || !Kind::ALL.contains(&kind)
}
