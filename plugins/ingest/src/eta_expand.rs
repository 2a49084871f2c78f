//! Wraps functions that are values in closures that call them.
//!
//! ```ir
//! %t = (@f, %x)        =>      %t = (fn (%p: f32[4]) { ret @f(%p) }, %x)
//! ```
//!
//! Afterwards every function of the module is only called, so a pass may change how it is called by changing
//! its calls. What an operator is given, such as the program of `call_tir`, is no value and stays.

use tenon_plugin_api::prelude::*;

/// Wraps functions that are values in closures that call them.
#[pass(
    name = "relax.EtaExpand",
    aliases = ["relay._transform.EtaExpand"],
    opt_level = 1,
    phase = "ingest",
    until = "builtin",
    destroys = ["closed"],
    idempotent = true
)]
fn eta_expand(func: Function, module: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let first = match body.view(expr) {
            View::Call { callee, .. } if body.op_name(callee).is_some() => continue,
            View::Call { .. } => 1,
            _ => 0,
        };
        let is_value = |operand: Expr| body.kind(operand) == Kind::GLOBAL;
        if !body.operands(expr).skip(first).iter().any(is_value) {
            continue;
        }
        let mut operands: Vec<Expr> = rw.body().operands_keeping_binders(expr).collect();
        for operand in operands.iter_mut().skip(first) {
            if let View::Global { name } = rw.view(*operand)
                && let Some(callee) = module.get(name)
            {
                *operand = closure(&mut rw, *operand, &callee)?;
            }
        }
        let rebuilt = rw.rebuild(expr, &operands);
        match expr == body.root() {
            true => rw.set_root(rebuilt),
            false => rw.replace(expr, rebuilt),
        }
    }
    rw.finish()
}

/// A closure that calls the function at `global`.
fn closure(rw: &mut Rewriter, global: Expr, callee: &Function) -> Result<Expr> {
    let view = callee.view();
    let mut params = Vec::new();
    for ty in callee.param_types() {
        let ty = ty.ok_or_else(|| PassError::new("a parameter of a function has no type"))?;
        params.push(rw.var("p", Some(ty)));
    }
    let ty = match (view.view(view.root()), callee.result()) {
        (View::Function { result, .. }, Some(value)) => result.or(view.ty(value)),
        _ => None,
    };
    let call = rw.call(global, &params, Attrs::NONE, ty);
    let block = rw.let_blocks(&[], call);
    rw.set_type(block, ty);
    Ok(rw.function(&params, block, ty, Attrs::NONE))
}
