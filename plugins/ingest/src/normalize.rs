//! Brings a function into block form: every call is bound to a variable.
//!
//! ```ir
//! fn @main(%x: f32[4]) {          fn @main(%x: f32[4]) {
//!   ret exp(negative(%x))   =>      %t = negative(%x)
//! }                                 %t_1 = exp(%t)
//!                                   ret %t_1
//!                                 }
//! ```
//!
//! A function body, a branch or a closure that is not yet a block of bindings becomes one. The host binds
//! the nested calls of a block when the function is published, each in the innermost block that encloses
//! all of its uses; so a value that was shared is still evaluated once. A function in block form comes
//! back as it is.

use tenon_plugin_api::prelude::*;

/// Brings functions into block form, in which every call is bound to a variable.
#[pass(
    name = "relax.Normalize",
    aliases = ["relax.transform.Normalize", "relay._transform.ToANormalForm",
               "raf.pass_.ToANormalForm"],
    opt_level = 0,
    phase = "ingest",
    establishes = ["block_form"],
    idempotent = true
)]
fn normalize(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        match body.view(expr) {
            View::Function { params, body: result, result: ty, attrs } => {
                if let Some(block) = as_block(&mut rw, body, result) {
                    let closure = rw.function(&params.to_vec(), block, ty, attrs);
                    copy_header(&mut rw, body, expr, closure);
                }
            }
            View::If { cond, then, otherwise } => {
                let blocks = (as_block(&mut rw, body, then), as_block(&mut rw, body, otherwise));
                if blocks != (None, None) {
                    let then = blocks.0.unwrap_or(then);
                    let choice = rw.if_else(cond, then, blocks.1.unwrap_or(otherwise));
                    rw.set_type(choice, body.ty(expr));
                    rw.replace(expr, choice);
                }
            }
            _ => {}
        }
    }
    rw.finish()
}

/// A block without bindings around a result that is more than a leaf; `None` when it needs none.
fn as_block(rw: &mut Rewriter, body: BodyView<'_>, result: Expr) -> Option<Expr> {
    let kind = body.kind(result);
    if kind == Kind::LET || kind == Kind::VAR || kind.is_leaf_value() {
        return None;
    }
    let result = rw.body().resolve(result);
    let block = rw.let_blocks(&[], result);
    rw.set_type(block, rw.body().ty(result));
    Some(block)
}

/// Gives a rebuilt function the privacy and type of the old one, and its place.
fn copy_header(rw: &mut Rewriter, body: BodyView<'_>, old: Expr, new: Expr) {
    let operands = rw.body().operands(new).to_vec();
    let copy = rw.copy_node(body, old, &operands);
    rw.replace(old, copy);
    if old == body.root() {
        rw.set_root(copy);
    }
}
