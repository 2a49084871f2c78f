//! Dimensions as scalars of tensor programs.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::{DimView, Terms};
use tenon_plugin_api::prelude::*;

/// The symbols of a dimension, each once, in the order in which it is written.
pub(crate) fn symbols(terms: Terms<'_>, dim: Dim) -> Vec<Dim> {
    let mut parts = parts(terms, dim);
    parts.retain(|&part| matches!(terms.dim(part), DimView::Symbol(_)));
    parts
}

/// Whether a term holds a dimension that is no integer. The type of a function has symbols of its own, which do not
/// count. `known` keeps the answers.
pub(crate) fn is_symbolic(
    terms: Terms<'_>,
    term: impl Into<Term>,
    known: &mut HashMap<Term, bool>,
) -> bool {
    let root = term.into();
    let mut stack = vec![(root, false)];
    while let Some((term, is_ready)) = stack.pop() {
        let children = terms.children(term);
        match terms.view(term) {
            _ if known.contains_key(&term) => {}
            TermView::Dim(_) => drop(known.insert(term, true)),
            _ if matches!(terms.ty(Type(term.0)), TypeView::Func { .. }) => {
                known.insert(term, false);
            }
            _ if is_ready => {
                let found = children.iter().any(|child| known[child]);
                known.insert(term, found);
            }
            _ => {
                stack.push((term, true));
                stack.extend(children.iter().map(|&child| (child, false)));
            }
        }
    }
    known[&root]
}

/// The scalar that a dimension is. `known` has those of its symbols, and gets all of its parts.
pub(crate) fn scalar(rw: &mut Rewriter, dim: Dim, known: &mut HashMap<Dim, Expr>) -> Result<Expr> {
    let cx = rw.cx();
    let terms = cx.terms();
    for part in parts(terms, dim) {
        if known.contains_key(&part) {
            continue;
        }
        let (op, operands) = match terms.dim(part) {
            DimView::Const(value) => {
                known.insert(part, rw.index(value));
                continue;
            }
            DimView::Add(operands) => (BinaryOp::Add, operands),
            DimView::Mul(operands) => (BinaryOp::Mul, operands),
            DimView::FloorDiv(a, b) => (BinaryOp::FloorDiv, &[a, b][..]),
            DimView::FloorMod(a, b) => (BinaryOp::FloorMod, &[a, b][..]),
            DimView::Min(a, b) => (BinaryOp::Min, &[a, b][..]),
            DimView::Max(a, b) => (BinaryOp::Max, &[a, b][..]),
            DimView::Symbol(_) | DimView::Unknown(_) => {
                let text = terms.dim_text(part);
                return Err(PassError::new(format!("the dimension `{text}` cannot be computed")));
            }
        };
        let operands: Vec<Expr> = operands.iter().map(|operand| known[operand]).collect();
        let scalar = operands.into_iter().reduce(|a, b| rw.binary(op, a, b));
        known.insert(part, scalar.expect("a sum and a product have parts"));
    }
    Ok(known[&dim])
}

/// The dimensions that a dimension is made of and itself, each once, parts before what they are parts of.
fn parts(terms: Terms<'_>, dim: Dim) -> Vec<Dim> {
    let mut parts = Vec::new();
    let mut seen = HashSet::new();
    let mut stack = vec![(dim, false)];
    while let Some((dim, is_ready)) = stack.pop() {
        if is_ready {
            parts.push(dim);
        } else if seen.insert(dim) {
            stack.push((dim, true));
            if !matches!(terms.dim(dim), DimView::Symbol(_)) {
                stack.extend(terms.children(dim).iter().rev().map(|child| (Dim(child.0), false)));
            }
        }
    }
    parts
}
