//! Removes pairs of negations: `negative(negative(x))` is `x`.

use tenon_plugin_api::prelude::*;

/// Removes pairs of negations.
#[pass(name = "acme.DoubleNegation", opt_level = 1, phase = "optimize", after = ["relax.FoldConstant"])]
fn double_negation(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in rw.post_order() {
        let Some(inner) = negated(&rw, body, expr) else { continue };
        let inner = rw.original_definition(inner);
        if let Some(x) = negated(&rw, body, inner) {
            rw.replace(expr, x);
        }
    }
    rw.finish()
}

/// `x` when `expr` is `negative(x)`.
fn negated(rw: &Rewriter, body: BodyView<'_>, expr: Expr) -> Option<Expr> {
    match body.view(expr) {
        View::Call { callee, args, .. } if body.op_name(callee) == Some("negative") => {
            Some(rw.body().resolve(args.at(0)))
        }
        _ => None,
    }
}
