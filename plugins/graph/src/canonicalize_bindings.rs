//! Removes variables that only rename, and projections of tuples that are spelled out.
//!
//! ```ir
//! %a = exp(%x)                 %a = exp(%x)
//! %b = %a                =>    %d = negative(%a)
//! %c = (%b, %x)                ret %d
//! %d = negative(%c.0)
//! ret %d
//! ```
//!
//! A variable bound to a variable, a constant, a shape or a global stands for it everywhere; a field of
//! a tuple whose fields are known is the field. What is renamed is defined before the name, and every use
//! of the name sees what the name was bound to, so scopes stay right. The bindings that nothing reads any
//! more are dropped here when they are leaves or tuples; others are left to `relax.DeadCodeElimination`.

use tenon_plugin_api::prelude::*;

/// Removes bindings that only rename, and projections of known tuples.
#[pass(
    name = "relax.CanonicalizeBindings",
    aliases = ["relax.transform.CanonicalizeBindings", "raf.pass_.InlineLet"],
    opt_level = 1,
    phase = "optimize",
    until = "builtin",
    idempotent = true
)]
fn canonicalize_bindings(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    // For each variable of a binding that goes, true.
    let mut is_alias = SideTable::new(body, false);
    let mut blocks = Vec::new();
    for expr in body.post_order() {
        match body.view(expr) {
            View::TupleGetItem { tuple, index } => {
                let tuple = rw.definition(tuple);
                let field = match rw.view(tuple) {
                    View::Tuple(fields) => fields.get(index),
                    _ => None,
                };
                if let Some(field) = field {
                    rw.replace(expr, field);
                }
            }
            View::Let(bindings) => blocks.push((expr, bindings)),
            _ => {}
        }
    }
    for (_, bindings) in &blocks {
        for (var, value) in bindings.bindings() {
            let value = rw.body().resolve(value);
            let kind = rw.body().kind(value);
            let is_name = kind == Kind::VAR || (kind.is_leaf_value() && kind != Kind::OP);
            if is_name && rw.body().ty(value) == rw.body().ty(var) {
                is_alias[var] = true;
                rw.replace(var, value);
            }
        }
    }
    for (expr, bindings) in blocks {
        if bindings.bindings().all(|(var, _)| !is_alias[var]) {
            continue;
        }
        let kept: Vec<(bool, Vec<(Expr, Expr)>)> = bindings
            .blocks()
            .into_iter()
            .map(|block| {
                let kept = (block.first..block.first + block.len)
                    .map(|index| bindings.binding(index))
                    .filter(|(var, _)| !is_alias[*var])
                    .map(|(var, value)| (var, rw.body().resolve(value)))
                    .collect();
                (block.is_dataflow, kept)
            })
            .collect();
        let result = rw.body().resolve(bindings.result());
        if kept.iter().all(|(_, kept)| kept.is_empty()) {
            rw.replace(expr, result);
            continue;
        }
        let block = rw.let_blocks(&kept, result);
        rw.set_type(block, body.ty(expr));
        rw.replace(expr, block);
    }
    rw.finish()
}
