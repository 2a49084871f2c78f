//! What the host does for passes: operators, inference, evaluation.

use std::sync::Arc;

use crate::border::Run;
use crate::eval::Tensor;
use crate::infer::infer_expr;
use crate::ir::{
    Attrs, Build, Context, Cx, DType, Expr, Function, Kind, Symbol, Transaction, Type, TypeView,
    View,
};
use crate::ops::{self, EvalCx, OpAttrs};

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

/// Evaluates an operator call whose arguments are constants, tuples of constants or shapes, and adds the
/// result to the transaction: a constant, or a tuple of constants.
pub(crate) fn evaluate(transaction: &mut Transaction, expr: Expr) -> Result<Expr, String> {
    let body = transaction.body();
    let View::Call { callee, args, attrs } = body.view(expr) else {
        return Err(format!("a {} is not evaluated, only calls are", body.kind(expr).name()));
    };
    let name = body.op_name(callee).ok_or("only calls of operators are evaluated")?;
    let op = ops::get(name).map_err(|error| error.to_string())?;
    let evaluate = op.evaluate.ok_or_else(|| format!("`{name}` has no reference evaluation"))?;
    let cx = transaction.cx();
    let terms = cx.terms();
    let ty = body
        .ty(expr)
        .or_else(|| infer_expr(&cx, body, expr, &|_| None).ok().flatten())
        .ok_or_else(|| format!("the type of a call of `{name}` is not known"))?;
    let args = constant_args(transaction, args.to_vec())?;
    let attrs = OpAttrs::new(op, terms.attrs(attrs), terms).map_err(|error| error.to_string())?;
    let outs = outputs(&cx, ty)?;
    let values = evaluate(&EvalCx { op, args: &args, attrs, outs: &outs })
        .map_err(|error| format!("`{name}`: {error}"))?;
    let is_tuple = matches!(terms.ty(ty), TypeView::Tuple(_));
    let constants: Vec<Expr> = values
        .iter()
        .map(|value| transaction.shared_constant(Arc::new(value.to_constant(&cx))))
        .collect();
    match constants.as_slice() {
        &[constant] if !is_tuple => Ok(constant),
        fields => {
            let tuple = transaction.tuple(fields);
            transaction.set_type(tuple, Some(ty));
            Ok(tuple)
        }
    }
}

/// The tensors of arguments, tuples flattened, shapes and dimensions as tensors of i64.
fn constant_args(transaction: &Transaction, args: Vec<Expr>) -> Result<Vec<Tensor>, String> {
    let body = transaction.body();
    let terms = body.terms();
    let mut tensors = Vec::with_capacity(args.len());
    let mut pending: Vec<Expr> = args.into_iter().rev().collect();
    while let Some(arg) = pending.pop() {
        let tensor = match body.view(arg) {
            View::Constant(constant) => {
                let constant = &transaction.constants()[constant.index as usize];
                Tensor::from_constant(constant, terms)
            }
            View::Shape { ty } => match terms.ty(ty) {
                TypeView::Shape(Some(dims)) => {
                    let values: Option<Vec<i64>> =
                        dims.iter().map(|&dim| terms.dim_value(dim)).collect();
                    values.map(|values| Tensor::from_vec(vec![values.len()], values))
                }
                _ => None,
            },
            View::Prim { dim } => terms.dim_value(dim).map(Tensor::scalar),
            View::Tuple(fields) => {
                pending.extend(fields.iter().rev());
                continue;
            }
            _ => None,
        };
        tensors.push(tensor.ok_or("an argument is not known at compile time")?);
    }
    Ok(tensors)
}

/// Element type and shape of each tensor of a type.
fn outputs(cx: &Cx, ty: Type) -> Result<Vec<(DType, Vec<usize>)>, String> {
    let terms = cx.terms();
    ops::flatten(terms, &[ty])
        .into_iter()
        .map(|ty| {
            let (dtype, shape) =
                terms.static_tensor(ty).ok_or("the shape of the result is not known")?;
            let shape: Result<Vec<usize>, _> = shape.into_iter().map(usize::try_from).collect();
            Ok((dtype, shape.map_err(|_| "a dimension is negative")?))
        })
        .collect()
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
