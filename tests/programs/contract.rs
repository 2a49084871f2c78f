//! The form of the programs, which passes rely on.

use std::collections::HashMap;

use tenon_compiler::ir::{Args, BodyView, Expr, Function, LoopKind, View};
use tenon_compiler::ops::OpPattern;
use tenon_plugin_api::program::{OP_NAME, OP_PATTERN};

/// What is wrong with the form of a program.
pub(crate) fn check_contract(func: &Function) -> Result<(), String> {
    let body = func.view();
    let View::PrimFunc { params, outputs, body: stmt, attrs } = body.view(body.root()) else {
        return Err("it is no tensor program".into());
    };
    let attrs = body.terms().attrs(attrs);
    attrs.str(OP_NAME).ok_or("it does not say what it computes")?;
    let pattern = attrs.int(OP_PATTERN).ok_or("it does not say how it may be fused")?;
    let is_empty = matches!(body.view(stmt), View::Seq(stmts) if stmts.is_empty());
    if is_empty || pattern == OpPattern::Opaque as i64 {
        return Ok(());
    }
    if pattern <= OpPattern::Injective as i64 {
        return check_nest(body, stmt);
    }
    let outputs: Vec<Expr> = params.skip(params.len() - outputs).to_vec();
    check_stores(body, &outputs)?;
    check_loops(body, stmt)
}

/// Serial loops around one block with a store, whose indices are its iterators, which are bound to the loop variables.
fn check_nest(body: BodyView<'_>, stmt: Expr) -> Result<(), String> {
    let mut vars = Vec::new();
    let mut stmt = stmt;
    while let View::For { var, body: inner, kind, .. } = body.view(stmt) {
        if kind != LoopKind::Serial {
            return Err(format!("a {} loop in an element-wise program", kind.text()));
        }
        vars.push(var);
        stmt = inner;
    }
    let View::Block(block) = body.view(stmt) else {
        return Err("there is no block inside of its loops".into());
    };
    if !block.iterators().map(|iter| iter.binding).eq(vars) {
        return Err("its iterators are not bound to the loop variables".into());
    }
    let is_plain = |indices: Args<'_>| indices.iter().eq(block.iterators().map(|iter| iter.var));
    match body.view(block.body) {
        View::Store { indices, .. } if is_plain(indices) => Ok(()),
        View::Store { .. } => Err("it stores at other indices than its iterators".into()),
        _ => Err("there is something else inside of its block than a store".into()),
    }
}

/// One store statement for each result.
fn check_stores(body: BodyView<'_>, outputs: &[Expr]) -> Result<(), String> {
    let mut stores: HashMap<Expr, usize> = HashMap::new();
    for expr in body.post_order() {
        if let View::Store { buffer, .. } = body.view(expr) {
            *stores.entry(buffer).or_default() += 1;
        }
    }
    match outputs.iter().all(|output| stores.get(output) == Some(&1)) {
        true => Ok(()),
        false => Err("there is not exactly one store to each result".into()),
    }
}

/// Parallel loops stand outside of all others, and vectorized ones inside.
fn check_loops(body: BodyView<'_>, root: Expr) -> Result<(), String> {
    let mut pending = vec![(root, Vec::<LoopKind>::new())];
    while let Some((stmt, around)) = pending.pop() {
        let mut inside = around.clone();
        if let View::For { kind, .. } = body.view(stmt) {
            if kind == LoopKind::Parallel && !around.is_empty() {
                return Err("a parallel loop stands in another loop".into());
            }
            if around.contains(&LoopKind::Vectorized) {
                return Err("a loop stands in a vectorized one".into());
            }
            inside.push(kind);
        }
        pending.extend(body.inner_stmts(stmt).iter().map(|stmt| (*stmt, inside.clone())));
    }
    Ok(())
}
