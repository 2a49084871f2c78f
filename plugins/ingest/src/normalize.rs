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
//! all of its uses; so a value that was shared is still evaluated once. Blocks of one kind that follow each
//! other become one, and a variable of type `()` is read as the empty tuple that it stands for. A function
//! in block form comes back as it is.

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

/// Brings functions into block form, in which every call is bound to a variable.
#[pass(
    name = "relax.Normalize",
    aliases = ["relax.transform.Normalize", "relay._transform.ToANormalForm",
               "relay._transform.ToBasicBlockNormalForm", "raf.pass_.ToANormalForm",
               "raf.pass_.ToBasicBlockNormalForm"],
    opt_level = 0,
    phase = "ingest",
    until = "builtin",
    establishes = ["block_form"],
    idempotent = true
)]
fn normalize(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    inline_empty_tuples(&mut rw, body);
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
                    let then = blocks.0.unwrap_or(rw.body().resolve(then));
                    let otherwise = blocks.1.unwrap_or(rw.body().resolve(otherwise));
                    let cond = rw.body().resolve(cond);
                    let choice = rw.if_else(cond, then, otherwise);
                    rw.set_type(choice, body.ty(expr));
                    rw.replace(expr, choice);
                }
            }
            View::Let(bindings) if has_neighbours(bindings) => merge_blocks(&mut rw, body, expr),
            _ => {}
        }
    }
    if has_nested_calls(body) {
        // The host binds them when the function is published, which a new root sees to.
        let root = rw.body().resolve(body.root());
        let operands: Vec<Expr> = rw.body().operands_keeping_binders(root).collect();
        let root = rw.rebuild(root, &operands);
        rw.set_root(root);
    }
    rw.finish()
}

/// Whether a call, a projection or a choice stands anywhere but behind a variable.
fn has_nested_calls(body: BodyView<'_>) -> bool {
    let mut is_bound = SideTable::new(body, false);
    for expr in body.post_order() {
        if let View::Let(bindings) = body.view(expr) {
            bindings.bindings().for_each(|(_, value)| is_bound[value] = true);
        }
    }
    let is_nested = |expr: Expr| {
        matches!(body.kind(expr), Kind::CALL | Kind::TUPLE_GET_ITEM | Kind::IF) && !is_bound[expr]
    };
    body.post_order().any(is_nested)
}

/// Has the uses of variables of type `()` read the empty tuple.
fn inline_empty_tuples(rw: &mut Rewriter, body: BodyView<'_>) {
    let empty = rw.cx().tuple_type(&[]);
    let mut is_void = SideTable::new(body, false);
    for expr in body.post_order() {
        let View::Let(bindings) = body.view(expr) else { continue };
        for (var, _) in bindings.bindings().filter(|&(var, _)| body.ty(var) == Some(empty)) {
            is_void[var] = true;
        }
    }
    if !body.post_order().any(|expr| is_void[expr]) {
        return;
    }
    for expr in body.post_order() {
        for (position, operand) in body.operands(expr).iter().enumerate() {
            if is_void[operand] && !body.is_binder(expr, position) {
                is_void[operand] = false;
                let tuple = rw.tuple(&[]);
                rw.replace(operand, tuple);
            }
        }
    }
}

/// Whether blocks of one kind follow each other.
fn has_neighbours(bindings: LetView<'_>) -> bool {
    bindings.blocks().windows(2).any(|pair| pair[0].is_dataflow == pair[1].is_dataflow)
}

/// Makes one block of those of one kind that follow each other.
fn merge_blocks(rw: &mut Rewriter, body: BodyView<'_>, expr: Expr) {
    let mut list = LetList::new();
    let View::Let(bindings) = rw.view(expr) else { return };
    for block in bindings.blocks() {
        for (var, value) in (block.first..block.first + block.len).map(|at| bindings.binding(at)) {
            list.bind(block.is_dataflow, var, value);
        }
    }
    let result = bindings.result();
    let merged = list.finish(rw, result);
    rw.set_type(merged, body.ty(expr));
    rw.replace(expr, merged);
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
