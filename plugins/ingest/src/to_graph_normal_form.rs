//! Turns functions into graphs, without bindings.
//!
//! ```ir
//! fn @main(%x: f32[4]) {
//!   %a = exp(%x)                  fn @main(%x: f32[4]) {
//!   %b = add(%a, %a)       =>       ^0 = exp(%x)
//!   ret %b                          ret add(^0, ^0)
//! }                               }
//! ```
//!
//! A graph evaluates what its result needs, once, however often it is used; so bindings that nothing reads are
//! gone, and a value that only one branch needs is evaluated there. That is right for what has no effect. A
//! function with a call of anything but a pure operator stays as it is, and so does one that binds a closure,
//! which may name itself, or a variable whose type says more than that of its value. `relax.Normalize` goes back.

use tenon_plugin_api::prelude::*;

/// Turns functions into graphs, without bindings.
#[pass(
    name = "relax.ToGraphNormalForm",
    aliases = ["relay._transform.ToGraphNormalForm", "raf.pass_.ToGraphNormalForm"],
    opt_level = 1,
    phase = "ingest",
    destroys = ["block_form"],
    idempotent = true
)]
fn to_graph_normal_form(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let is_graph = body.post_order().all(|expr| body.kind(expr) != Kind::LET);
    let may_float =
        Effects::of(&func, cx).is_pure() && body.post_order().all(|expr| is_inlined(body, expr));
    if is_graph || !may_float {
        return Ok(func);
    }
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Let(bindings) = body.view(expr) else { continue };
        for (var, value) in bindings.bindings() {
            rw.replace(var, value);
        }
        rw.replace(expr, bindings.result());
    }
    rw.finish()
}

/// Whether the variables that a node binds may be replaced by their values.
fn is_inlined(body: BodyView<'_>, expr: Expr) -> bool {
    match body.view(expr) {
        View::Let(bindings) => bindings.bindings().all(|(var, value)| {
            body.kind(value) != Kind::FUNCTION && body.ty(var) == body.ty(value)
        }),
        _ => true,
    }
}
