//! The evaluator, over graph functions and tensor programs at every phase.

mod graph;
mod limits;
#[path = "../support/operators.rs"]
mod operators;
mod program;
mod runtime;
mod threads;

use std::sync::Arc;

use tenon_eval::*;
use tenon_ir::{Attrs, Build, Context, Cx, DType, Expr, Function, Module, Transaction, Type};

fn f32s(cx: &Cx, shape: &[i64]) -> Type {
    cx.static_tensor_type(DType::F32, shape)
}

fn vector(values: &[f32]) -> Value {
    Value::Tensor(Tensor::from_vec(vec![values.len()], values.to_vec()))
}

fn elements(value: &Value) -> Vec<f32> {
    value.to_tensor().expect("a tensor").elements::<f32>().to_vec()
}

/// A module with one function `main`.
fn module(cx: &Cx, func: Arc<Function>) -> Module {
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("main"), func);
    module
}

/// A function of parameters of these types whose result is what `build` makes of them.
fn function(
    cx: &Cx,
    params: &[Type],
    build: impl FnOnce(&mut Transaction, &[Expr]) -> Expr,
) -> Arc<Function> {
    let mut tx = Transaction::new(cx.clone());
    let params: Vec<Expr> = params.iter().map(|&ty| tx.var("x", Some(ty))).collect();
    let body = build(&mut tx, &params);
    let root = tx.function(&params, body, None, Attrs::NONE);
    tx.set_root(root);
    tx.finish().unwrap()
}
