//! What a function does before anything else.

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

/// The outermost bindings of a graph function.
pub(crate) fn outermost(func: &Function) -> Option<LetView<'_>> {
    match func.view().view(func.result()?) {
        View::Let(bindings) => Some(bindings),
        _ => None,
    }
}

/// An error where a function stands within another: its dimensions are its own.
pub(crate) fn refuse_nested(func: &Function, name: &str) -> Result<()> {
    let body = func.view();
    let nested =
        body.post_order().find(|&expr| body.kind(expr) == Kind::FUNCTION && expr != body.root());
    match nested {
        Some(expr) => {
            let message =
                format!("a function stands within `@{name}`; run relax.LambdaLift before");
            Err(PassError::new(message).at(expr))
        }
        None => Ok(()),
    }
}

/// Publishes a function that begins with the bindings of `list`. `bind` adds each of its own outermost bindings, and
/// what stands around it; `last` what follows all of them, before the result.
pub(crate) fn enter(
    mut rw: Rewriter,
    func: &Function,
    mut list: LetList,
    attrs: Attrs,
    mut bind: impl FnMut(&mut Rewriter, &mut LetList, (bool, Expr, Expr)),
    last: impl FnOnce(&mut Rewriter, &mut LetList, Expr),
) -> Result<Function> {
    let root = func.view().root();
    let mut operands: Vec<Expr> = rw.body().operands_keeping_binders(root).collect();
    let Some(mut result) = operands.pop() else { return rw.finish() };
    let ty = rw.body().ty(result);
    if let View::Let(bindings) = rw.view(result) {
        let value = bindings.result();
        for (is_dataflow, var, value) in each(bindings) {
            bind(&mut rw, &mut list, (is_dataflow, var, value));
        }
        result = value;
    }
    last(&mut rw, &mut list, result);
    let body = list.finish(&mut rw, result);
    rw.set_type(body, ty);
    operands.push(body);
    let spec = NodeSpec { attrs, ..rw.body().spec(root) };
    let root = rw.push(spec, &operands);
    rw.set_root(root);
    rw.finish()
}

/// The bindings in order: whether the block is a dataflow block, variable, value.
fn each(bindings: LetView<'_>) -> Vec<(bool, Expr, Expr)> {
    let mut each = Vec::with_capacity(bindings.len());
    for block in bindings.blocks() {
        for index in block.first..block.first + block.len {
            let (var, value) = bindings.binding(index);
            each.push((block.is_dataflow, var, value));
        }
    }
    each
}
