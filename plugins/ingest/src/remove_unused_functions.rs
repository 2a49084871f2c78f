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

use tenon_plugin_api::prelude::*;

/// Removes private functions that nothing reaches.
#[pass(
    name = "relax.RemoveUnusedFunctions",
    aliases = ["relax.transform.RemoveUnusedFunctions", "relay._transform.RemoveUnusedFunctions"],
    opt_level = 1,
    phase = "ingest",
    until = "builtin",
    idempotent = true
)]
fn remove_unused_functions(mut module: Module, _: &PassContext) -> Result<Module> {
    for name in CallGraph::of(&module).unreachable() {
        module.remove(name);
    }
    Ok(module)
}
