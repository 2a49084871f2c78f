//! Gives each reader of a value that is cast to a wider type a cast of its own.
//!
//! ```ir
//! %w = cast(%x) { dtype = "f32" }       %w = cast(%x) { dtype = "f32" }
//! %a = exp(%w)                          %a = exp(%w)
//! %b = negative(%w)               =>    %t = cast(%x) { dtype = "f32" }
//!                                       %b = negative(%t)
//! ```
//!
//! The cast is then fused into each reader, which reads the narrow value from memory; without this the wide one
//! is written and read. It stands behind `relax.EliminateCommonSubexpr`, which does the opposite. Readers that do
//! not fuse, such as calls of functions and tuples, share the first cast.

use tenon_plugin_api::prelude::*;

/// Gives each reader of a value that is cast to a wider type a cast of its own.
#[pass(
    name = "relax.CanonicalizeCast",
    aliases = ["relay._transform.CanonicalizeCast"],
    opt_level = 3,
    phase = "optimize",
    until = "builtin",
    requires = ["relax.Normalize"],
    after = ["relax.EliminateCommonSubexpr"]
)]
fn canonicalize_cast(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    // For each node of the function, whether a reader has taken it as its own.
    let mut is_taken = SideTable::new(body, false);
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let info = body.op_name(callee).and_then(|op| cx.op_info(op));
        if !info.is_some_and(|info| info.is_pure && info.pattern <= OpPattern::OutFusable) {
            continue;
        }
        let mut operands = rw.body().operands(expr).to_vec();
        let mut is_changed = false;
        for operand in operands.iter_mut().skip(1) {
            let Some(cast) = widening(&mut rw, *operand) else { continue };
            let is_first =
                is_taken.get_mut(cast).is_none_or(|taken| !std::mem::replace(taken, true));
            if !is_first {
                let parts = rw.body().operands(cast).to_vec();
                *operand = rw.rebuild(cast, &parts);
                is_changed = true;
            }
        }
        if is_changed {
            let own = rw.rebuild(expr, &operands);
            rw.replace(expr, own);
        }
    }
    rw.finish()
}

/// The call that casts to a wider type, when an expression is or stands for one.
fn widening(rw: &mut Rewriter, expr: Expr) -> Option<Expr> {
    let cast = rw.call_of(expr, "cast")?;
    let (from, _) = rw.tensor(cast.args[0])?;
    let (to, _) = rw.tensor(cast.expr)?;
    (from.bits() < to.bits()).then_some(cast.expr)
}
