//! Replaces `exp`, `log` and their like by arithmetic.
//!
//! ```ir
//! y[i] = sigmoid(x[i])            let x_1 = x[i]
//!                          =>     let falling = 0.0 - abs(x_1)
//!                                 …
//!                                 y[i] = sigmoid_1
//! ```
//!
//! A back end would call a library for them, one number at a time. As polynomials on parts of the number's
//! bits they become vector code like any other arithmetic. The functions, with their accuracy and what
//! they do at the borders of their ranges, stand in `intrinsics/`, one file for each family. `sqrt`, `abs`,
//! the roundings and `fma` stay: processors have them.
//!
//! The steps stand before the statement that uses them. Values are computed where they are needed
//! or earlier within the same step of a loop, and reading a float has no effect, so nothing changes but
//! the last digits.
//!
//! It comes before `tir.VectorizeLoop`.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use crate::intrinsics::{Steps, lower};

/// The functions that are replaced.
const FUNCTIONS: [&str; 18] = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log", "pow",
    "scaleb", "sigmoid", "sin", "sinh", "tan", "tanh",
];
/// The one of them that processors with AVX-512 have an instruction for.
const SCALING: &str = "scaleb";

/// Replaces `exp`, `log` and their like by arithmetic.
#[pass(
    name = "tir.LowerIntrinsics",
    aliases = ["tir.transform.LowerIntrin"],
    phase = "target",
    establishes = ["no_intrinsics"],
    before = ["tir.VectorizeLoop"],
    idempotent = true
)]
fn lower_intrinsics(func: PrimFunc, _: &Module, cx: &PassContext) -> Result<PrimFunc> {
    let body = func.view();
    let has_scaling = cx.has_feature("avx512f");
    let has_function = functions_inside(body, has_scaling);
    let mut rw = func.edit();
    // Sequences that stand for one statement; the sequences around them take them in.
    let mut expanded: HashMap<Expr, Vec<Expr>> = HashMap::new();
    for stmt in rw.post_order().filter(|&stmt| body.kind(stmt).is_stmt()) {
        if let View::Seq(stmts) = rw.view(stmt) {
            let stmts = stmts.to_vec();
            if stmts.iter().any(|stmt| expanded.contains_key(stmt)) {
                let stmts: Vec<Expr> = stmts
                    .into_iter()
                    .flat_map(|stmt| expanded.get(&stmt).cloned().unwrap_or_else(|| vec![stmt]))
                    .collect();
                let flat = rw.seq(&stmts);
                rw.replace(stmt, flat);
            }
        } else if body.operands(stmt).iter().any(|operand| has_function[operand]) {
            let steps = Steps::new(&mut rw, has_scaling);
            let stmts = expand(steps, stmt, &has_function)?;
            let seq = rw.seq(&stmts);
            rw.replace(stmt, seq);
            expanded.insert(seq, stmts);
        }
    }
    Ok(rw.finish()?.into())
}

fn is_lowered(name: &str, has_scaling: bool) -> bool {
    FUNCTIONS.contains(&name) && !(has_scaling && name == SCALING)
}

/// For each expression whether one of the functions is in it.
fn functions_inside(body: BodyView<'_>, has_scaling: bool) -> SideTable<bool> {
    let mut inside = SideTable::new(body, false);
    for expr in body.post_order() {
        let is_function = match body.view(expr) {
            View::Intrinsic { name, .. } => is_lowered(body.terms().str(name), has_scaling),
            _ => false,
        };
        let has_operand = || body.operands(expr).iter().any(|operand| inside[operand]);
        inside[expr] = !body.kind(expr).is_stmt() && (is_function || has_operand());
    }
    inside
}

/// The steps that a statement needs, and the statement that uses them.
fn expand(mut steps: Steps<'_>, stmt: Expr, has_function: &SideTable<bool>) -> Result<Vec<Expr>> {
    let mut copies: HashMap<Expr, Expr> = HashMap::new();
    let mut stack: Vec<(Expr, bool)> =
        steps.rw.body().operands(stmt).iter().rev().map(|operand| (operand, false)).collect();
    while let Some((expr, is_ready)) = stack.pop() {
        // What this rewriter built is arithmetic already.
        let is_wanted = has_function.get(expr).copied().unwrap_or(false);
        if !is_wanted || copies.contains_key(&expr) {
            continue;
        }
        let operands = steps.rw.body().operands(expr);
        if !is_ready {
            stack.push((expr, true));
            stack.extend(operands.iter().rev().map(|operand| (operand, false)));
            continue;
        }
        let operands: Vec<Expr> =
            operands.iter().map(|operand| *copies.get(&operand).unwrap_or(&operand)).collect();
        let copy = replace(&mut steps, expr, &operands).map_err(|error| error.at(expr))?;
        copies.insert(expr, copy);
    }
    let Steps { rw, lets: mut stmts, .. } = steps;
    let operands: Vec<Expr> = rw
        .body()
        .operands_keeping_binders(stmt)
        .map(|operand| *copies.get(&operand).unwrap_or(&operand))
        .collect();
    stmts.push(rw.rebuild(stmt, &operands));
    Ok(stmts)
}

/// An expression with these operands, as arithmetic when it is one of the functions.
fn replace(steps: &mut Steps<'_>, expr: Expr, operands: &[Expr]) -> Result<Expr> {
    let name = match steps.rw.view(expr) {
        View::Intrinsic { name, .. } => steps.rw.name_of(name),
        _ => String::new(),
    };
    if !is_lowered(&name, steps.has_scaling) {
        return Ok(steps.rw.rebuild(expr, operands));
    }
    lower(steps, &name, operands).ok_or_else(|| {
        let dtype =
            steps.rw.body().scalar_ty(expr).map_or("?".to_owned(), |(ty, _)| ty.to_string());
        PassError::new(format!("`{name}` of {dtype} has no arithmetic; convert to f32 before it"))
    })
}
