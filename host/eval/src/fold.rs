//! Constant folding: the value of a node, written as a constant where the node is edited.

use std::sync::Arc;

use tenon_ir::{Build, Constant, Context, Dim, Expr, Module, Transaction, Type, View};
use thiserror::Error;

use crate::{EvalError, Value, evaluate_expr};

/// Why a node is not folded.
#[derive(Debug, Error)]
pub enum FoldError {
    /// It has no value.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// Its value is none that is written as a constant: what it is instead.
    #[error("{0} cannot be written as a constant")]
    NoConstant(&'static str),
    /// It is nothing.
    #[error("there is no value")]
    NoValue,
}

/// Evaluates a node with constant operands and adds the result to the transaction. Tensor programs that it calls
/// are those of `module`.
///
/// # Errors
/// Why there is no value, or none that is a constant.
pub fn fold(
    transaction: &mut Transaction,
    module: Option<&Module>,
    expr: Expr,
) -> Result<Expr, FoldError> {
    let cx = transaction.cx();
    let (body, constants) = (transaction.body(), transaction.constants());
    let value = evaluate_expr(&cx, body, constants, module, expr)?;
    // As a rule the result takes the place of what was read.
    for operand in body.operands(expr).iter() {
        if let View::Constant(constant) = body.view(operand) {
            constants[constant.index as usize].data.unread();
        }
    }
    add_value(transaction, value)
}

/// Adds a value: tensors become constants that share its bytes.
fn add_value(transaction: &mut Transaction, value: Value) -> Result<Expr, FoldError> {
    enum Step {
        Value(Value),
        Tuple(usize),
    }
    let cx = transaction.cx();
    let mut steps = vec![Step::Value(value)];
    let mut done: Vec<Expr> = Vec::new();
    while let Some(step) = steps.pop() {
        let value = match step {
            Step::Tuple(count) => {
                let fields = done.split_off(done.len() - count);
                let types: Option<Vec<Type>> =
                    fields.iter().map(|&field| transaction.body().ty(field)).collect();
                let tuple = transaction.tuple(&fields);
                transaction.set_type(tuple, types.map(|types| cx.tuple_type(&types)));
                done.push(tuple);
                continue;
            }
            Step::Value(value) => value,
        };
        done.push(match value {
            Value::Tensor(tensor) => {
                transaction.shared_constant(Arc::new(Constant::of_tensor(&tensor, &cx)))
            }
            Value::Shape(dims) => {
                let dims: Vec<Dim> = dims.iter().map(|&dim| cx.dim(dim)).collect();
                transaction.shape(&dims)
            }
            Value::Scalar(value) => transaction.prim(cx.dim(value)),
            Value::Tuple(tuple) => {
                steps.push(Step::Tuple(tuple.fields().len()));
                steps.extend(tuple.fields().iter().rev().cloned().map(Step::Value));
                continue;
            }
            other => return Err(FoldError::NoConstant(other.kind())),
        });
    }
    done.pop().ok_or(FoldError::NoValue)
}
