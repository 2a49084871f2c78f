//! Removes private functions that nothing reaches.
//!
//! ```ir
//! fn @main(%x: f32[4]) {                fn @main(%x: f32[4]) {
//!   %a = call_tir(@exp, %x) { … }         %a = call_tir(@exp, %x) { … }
//!   ret %a                        =>      ret %a
//! }                                     }
//! private prim @exp(…) { … }            private prim @exp(…) { … }
//! private prim @log(…) { … }
//! ```
//!
//! Whoever uses the module may call its public functions, so these stay, and with them all that they name,
//! directly or over others. Private functions that only name each other go. Passes that merge functions or
//! drop calls leave such functions behind, so it runs after them.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

/// Removes private functions that nothing reaches.
#[pass(
    name = "relax.RemoveUnusedFunctions",
    aliases = ["relax.transform.RemoveUnusedFunctions", "relay._transform.RemoveUnusedFunctions"],
    phase = "fuse",
    idempotent = true
)]
fn remove_unused_functions(mut module: Module, _: &PassContext) -> Result<Module> {
    let functions: HashMap<Symbol, Function> = module.functions().into_iter().collect();
    let mut unreached: HashMap<Symbol, &Function> =
        functions.iter().map(|(&name, func)| (name, func)).collect();
    let is_public = |&(_, func): &(&Symbol, &Function)| !func.is_private();
    let mut work: Vec<Symbol> = functions.iter().filter(is_public).map(|(&name, _)| name).collect();
    while let Some(name) = work.pop() {
        let Some(func) = unreached.remove(&name) else { continue };
        let body = func.view();
        work.extend(body.post_order().filter_map(|expr| match body.view(expr) {
            View::Global { name } => Some(name),
            _ => None,
        }));
    }
    for &name in unreached.keys() {
        module.remove(name);
    }
    Ok(module)
}
