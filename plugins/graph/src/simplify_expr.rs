//! Algebraic simplification, by the rules that plugins have for it.
//!
//! ```ir
//! %a = negative(%x)
//! %b = negative(%a)                     =>   … %x …
//! %c = transpose(%y) { axes = [1, 0] }
//! %d = transpose(%c) { axes = [1, 0] }  =>   … %y …
//! ```
//!
//! It knows no operator: each call is shown to the rules of the facet `simplify` that plugins give for its operator. A rule
//! looks at one call and what its arguments are bound to, and answers with an expression of the same type, or with
//! nothing. Operands come before their users, so what a rule answers is seen by the rules of the calls behind it.
//!
//! Rules are exact, for infinities, zeros with a sign and what is no number as well, but for sums of constants, which are
//! drawn together. So `x + 0` of floats stays, since `-0 + 0` is `0`; `x + -0` goes. `x - x` and `x * 0` go for
//! integers alone. What rounds differently and is cheaper is in `relax.FastMath`; sums of constants are left to
//! `relax.FoldConstant`.

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::Simplify;

/// Applies algebraic rules: neutral elements, inverses, chains of casts, reshapes and transposes.
#[pass(
    name = "relax.SimplifyExpr",
    aliases = ["relay._transform.SimplifyExpr", "raf.pass_.SimplifyExpr"],
    opt_level = 1,
    phase = "optimize",
    until = "builtin",
    asks = ["simplify"]
)]
fn simplify_expr(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let mut rules = cx.rules::<Simplify>();
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let View::Op { name } = body.view(callee) else { continue };
        // What is read of memory is a value, for which the memory must not stand.
        if !rules.has(name)? || body.ty(expr).is_none() || rw.effects().version(expr) != 0 {
            continue;
        }
        let simpler = rules.rewritten(&mut rw, name, expr)?;
        if let Some(simpler) = simpler.filter(|&simpler| rw.body().ty(simpler) == body.ty(expr)) {
            rw.replace(expr, simpler);
        }
    }
    rw.finish()
}
