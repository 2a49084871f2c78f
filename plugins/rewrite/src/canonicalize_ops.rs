//! Writes special operators by plain ones.
//!
//! ```ir
//! %y = nn.bias_add(%x, %b) { axis = 1 }     =>     %t = expand_dims(%b) { axis = [1, 2] }
//!                                                  %y = add(%x, %t)
//! ```
//!
//! What is known of the plain ones then applies: an `add` is folded, moved into weights, carried along in blocked layouts.
//! It knows no operator: which are special, and what they are by plain ones, say rules of the facet `canonicalize`.

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::Canonicalize;

/// Writes special operators by plain ones.
#[pass(
    name = "relax.CanonicalizeOps",
    aliases = ["relay._transform.CanonicalizeOps", "raf.pass_.CanonicalizeOps"],
    opt_level = 3,
    phase = "optimize",
    before = ["relax.CombineParallelMatmul", "relax.FoldConstant"],
    idempotent = true,
    asks = ["canonicalize"]
)]
fn canonicalize_ops(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let mut rules = cx.rules::<Canonicalize>();
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let View::Op { name } = body.view(callee) else { continue };
        let plain = rules.rewritten(&mut rw, name, expr)?;
        // A call of which no more is known than its rank need not have a type by then.
        let fits = |&plain: &Expr| body.ty(expr).is_none() || rw.body().ty(plain) == body.ty(expr);
        if let Some(plain) = plain.filter(fits) {
            rw.replace(expr, plain);
        }
    }
    rw.finish()
}
