//! Whether a node has the shape that the text can say, and where its operands are scopes.

use crate::ir::{BodyView, Expr, Kind, Term, TermKind, View};

/// Whether a node must be written with numbers instead of names: a kind that this build does not know,
/// or a payload that the text of its kind has no room for.
pub(super) fn is_raw(body: BodyView<'_>, expr: Expr) -> bool {
    let node = body.raw_node(expr);
    let kind = Kind(node.kind);
    let terms = body.terms();
    let is_var = |expr: Expr| body.kind(expr) == Kind::VAR;
    let is_plain = match body.view(expr) {
        View::Unknown { .. } => return true,
        View::Var { .. } | View::Buffer { .. } => return false,
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
        _ => return true,
    };
    let flags = if kind == Kind::FUNCTION { 1 } else { 0 };
    let has_attrs = matches!(kind, Kind::CALL | Kind::FUNCTION);
    !is_plain
        || node.flags & !flags != 0
        || node.aux != 0
        || (node.attrs != 0 && (!has_attrs || terms.kind(Term(node.attrs)) != TermKind::DICT))
}

fn is_dim(kind: TermKind) -> bool {
    kind == TermKind::INT || (TermKind::DIM_SYMBOL.0..=TermKind::DIM_MAX.0).contains(&kind.0)
}
