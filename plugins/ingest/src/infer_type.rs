//! Infers the results of private functions anew, where what they declare says less than what they return.
//!
//! ```ir
//! fn @main(%x: f32[4]) {                           fn @main(%x: f32[4]) {
//!   %a: f32[*] = @f(%x)                              %a: f32[4] = @f(%x)
//!   ret %a                                   =>      ret %a
//! }                                                }
//! private fn @f(%p: f32[4]) -> f32[*] { … }        private fn @f(%p: f32[4]) { … }
//! ```
//!
//! Types are inferred from operands whenever a function was changed, so they are there at all times, and what is
//! wrong is an error then. But a result that is declared hides what is found, from callers too. This pass drops
//! such declarations, callees first, and has those who call them inferred again. A public function keeps what it
//! declares, which others rely on, and so does one that calls itself, whose type is not known without it.

use std::collections::HashSet;

use tenon_plugin_api::prelude::*;

/// Infers the results of private functions anew.
#[pass(
    name = "relax.InferType",
    aliases = ["relax.transform.InferType", "relay._transform.InferType", "raf.pass_.InferType"],
    opt_level = 0,
    phase = "ingest",
    until = "builtin",
    idempotent = true
)]
fn infer_type(mut module: Module, _: &PassContext) -> Result<Module> {
    let graph = CallGraph::of(&module);
    let mut changed: HashSet<Symbol> = HashSet::new();
    for name in graph.callees_first() {
        let Some(func) = module.get(name).filter(|func| !func.is_prim()) else { continue };
        let body = func.view();
        let View::Function { body: value, result, .. } = body.view(body.root()) else { continue };
        let calls_changed = graph.named_by(name).any(|callee| changed.contains(&callee));
        let is_vague = result.is_some() && (result != body.ty(value) || calls_changed);
        let may_drop = func.is_private() && !graph.is_recursive(name);
        if !(calls_changed || is_vague && may_drop) {
            continue;
        }
        let mut rw = func.edit();
        let operands: Vec<Expr> = body.operands_keeping_binders(body.root()).collect();
        let spec = body.spec(body.root());
        let data = if may_drop { 0 } else { spec.data };
        let root = rw.push(NodeSpec { ty: None, data, ..spec }, &operands);
        rw.set_root(root);
        module.insert(name, &rw.finish()?);
        changed.insert(name);
    }
    Ok(module)
}
