//! The results of functions.

use tenon_plugin_api::prelude::*;

/// What a `let` results in.
pub(crate) fn result_of(body: BodyView<'_>, expr: Expr) -> Expr {
    match body.view(expr) {
        View::Let(bindings) => bindings.result(),
        _ => expr,
    }
}

/// Has a function return something else.
pub(crate) fn set_result(rw: &mut Rewriter, func: &Function, result: Expr) {
    let body = func.view();
    let root = body.root();
    let value = body.operands(root).iter().last().unwrap_or(root);
    let value = match rw.view(value) {
        View::Let(_) => {
            let mut operands: Vec<Expr> = rw.body().operands_keeping_binders(value).collect();
            operands.pop();
            operands.push(result);
            rw.rebuild(value, &operands)
        }
        _ => result,
    };
    rw.set_type(value, None);
    let mut operands: Vec<Expr> = rw.body().operands_keeping_binders(root).collect();
    operands.pop();
    operands.push(value);
    let spec = NodeSpec { ty: None, data: 0, ..body.spec(root) };
    let root = rw.push(spec, &operands);
    rw.set_root(root);
}
