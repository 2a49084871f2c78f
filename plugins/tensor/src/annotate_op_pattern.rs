//! Says of a tensor program how it may be fused.
//!
//! ```ir
//! prim @add(x: f32[4, 8], b: f32[8], out y: f32[4, 8]) {      attribute op_pattern = 1
//!   for i in 0..4 { for j in 0..8 { y[i, j] = x[i, j] + b[j] } }
//! ```
//!
//! The pattern follows from where the program reads, compared with where it writes:
//!
//! | reads                                                     | pattern              |
//! |-----------------------------------------------------------|----------------------|
//! | all at the indices that are written                       | 0, elementwise       |
//! | some at a part of these indices, in their order           | 1, broadcast         |
//! | some at indices computed from those that are written      | 2, injective         |
//! | each element of one tensor goes into one sum              | 3, reduction         |
//! | elements of windows do, or products with another tensor's | 4, fusable at output |
//! | anything else, several stores, buffers of its own, calls  | 8, opaque            |
//!
//! A program that has the attribute, such as one made from an operator, keeps it.

use std::cell::OnceCell;

use tenon_plugin_api::ir::Args;
use tenon_plugin_api::prelude::*;

use crate::arith::{Forms, Linear};

/// Says of a tensor program how it may be fused.
#[pass(
    name = "tir.AnnotateOpPattern",
    aliases = ["relax.transform.AnnotateTIROpPattern", "relax.AnnotateTIROpPattern"],
    opt_level = 1,
    phase = "fuse",
    idempotent = true
)]
fn annotate_op_pattern(func: PrimFunc, _: &Module, cx: &PassContext) -> Result<PrimFunc> {
    let body = func.view();
    let attrs = body.attrs(body.root());
    if body.terms().attrs(attrs).get("op_pattern").is_some() {
        return Ok(func);
    }
    let pattern = pattern(body) as i64;
    let mut rw = func.edit();
    let root = rw.with_attrs(body.root(), cx.with_attr(attrs, "op_pattern", pattern.into()));
    rw.set_root(root);
    Ok(rw.finish()?.into())
}

fn pattern(body: BodyView<'_>) -> OpPattern {
    let Some(stores) = plain_stores(body) else { return OpPattern::Opaque };
    let Some(&update) = stores.last() else { return OpPattern::Opaque };
    let View::Store { buffer: out, value, indices } = body.view(update) else {
        return OpPattern::Opaque;
    };
    let forms = Forms::of(body);
    let forms_of = |indices: Args<'_>| -> Vec<Linear> {
        indices.iter().map(|index| forms.form(index)).collect()
    };
    let written = forms_of(indices);
    let reads = loads(body, value);
    let (own, others): (Vec<Expr>, Vec<Expr>) =
        reads.into_iter().partition(|&load| body.operands(load).at(0) == out);
    let is_sum = !own.is_empty();
    // Besides the update, a sum has one statement that sets the first value.
    if stores.len() > 1 + is_sum as usize {
        return OpPattern::Opaque;
    }
    let at = |load: Expr| forms_of(body.operands(load).skip(1));
    if is_sum {
        let is_at_place = own.iter().all(|&load| at(load) == written);
        // What stands in several windows would be computed for each.
        let is_read_once = |&load: &Expr| {
            at(load).iter().all(|index| index.as_atom().is_some() || index.value().is_some())
        };
        return match others.as_slice() {
            _ if !is_at_place => OpPattern::Opaque,
            [] => OpPattern::Reduction,
            [load] if is_read_once(load) => OpPattern::Reduction,
            _ => OpPattern::OutFusable,
        };
    }
    let (mut read, known) = (Vec::new(), OnceCell::new());
    let mut worst = OpPattern::Elementwise;
    for load in others {
        read.clear();
        read.extend(body.operands(load).skip(1).iter().map(|index| forms.form(index)));
        let known = || known.get_or_init(|| made_of_variables(body, &written));
        worst = worst.max(read_pattern(known, &read, &written));
    }
    worst
}

/// The stores of a program that stores to one parameter only and does nothing else; `None` for another.
fn plain_stores(body: BodyView<'_>) -> Option<Vec<Expr>> {
    let mut stores = Vec::new();
    let mut buffer_of_all = None;
    for stmt in body.post_order() {
        match body.view(stmt) {
            View::Store { buffer, .. } => {
                if *buffer_of_all.get_or_insert(buffer) != buffer {
                    return None;
                }
                stores.push(stmt);
            }
            View::Alloc { .. } | View::Evaluate { .. } | View::LetStmt { .. } => return None,
            View::Unknown { .. } | View::Call { .. } | View::Extern { .. } => return None,
            _ => {}
        }
    }
    Some(stores)
}

/// The loads in an expression, the last first.
fn loads(body: BodyView<'_>, value: Expr) -> Vec<Expr> {
    let mut loads = Vec::new();
    let mut is_inside = SideTable::new(body, false);
    is_inside[value] = true;
    // Operands come before their users.
    for expr in (0..=value.0).rev().map(Expr) {
        if is_inside[expr] {
            body.operands(expr).iter().for_each(|operand| is_inside[operand] = true);
            if body.kind(expr) == Kind::LOAD {
                loads.push(expr);
            }
        }
    }
    loads
}

/// The pattern of one read at `read`, of a program that writes at `written`; `known` tells the nodes that are made of the variables in
/// `written` alone.
fn read_pattern<'a>(
    known: impl FnOnce() -> &'a SideTable<bool>,
    read: &[Linear],
    written: &[Linear],
) -> OpPattern {
    if read == written {
        return OpPattern::Elementwise;
    }
    let mut rest = written.iter();
    let is_part = |index: &Linear| index.value() == Some(0) || rest.any(|other| other == index);
    if read.iter().all(is_part) {
        return OpPattern::Broadcast;
    }
    let known = known();
    match read.iter().all(|index| index.terms.iter().all(|&(atom, _)| known[atom])) {
        true => OpPattern::Injective,
        false => OpPattern::Opaque,
    }
}

/// For each node whether it is made of variables in `written` alone, and reads no memory.
fn made_of_variables(body: BodyView<'_>, written: &[Linear]) -> SideTable<bool> {
    let mut is_known = SideTable::new(body, false);
    for &(atom, _) in written.iter().flat_map(|index| &index.terms) {
        is_known[atom] = body.kind(atom) == Kind::VAR;
    }
    for expr in body.post_order() {
        if !matches!(body.kind(expr), Kind::VAR | Kind::LOAD) {
            is_known[expr] = body.operands(expr).iter().all(|operand| is_known[operand]);
        }
    }
    is_known
}
