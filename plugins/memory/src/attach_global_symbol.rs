//! Gives public functions their link names.
//!
//! ```ir
//! module { system_lib_prefix = "net_" }        module { system_lib_prefix = "net_" }
//! fn @main(%x: f32[4]) { … }             =>    fn @main(%x: f32[4]) { global_symbol = "main" } { … }
//! prim @exp(…) { … }                           prim @exp(…) { global_symbol = "net_exp" } { … }
//! private prim @log(…) { … }                   private prim @log(…) { … }
//! ```
//!
//! The attribute `global_symbol` is the name under which code generation lets others link to a function. A
//! function that has one keeps it, so names that a user gave stand. The module's attribute
//! `system_lib_prefix` tells the tensor programs of several libraries in one program apart; graph functions
//! are found through the library's own table and take no prefix.
//!
//! It comes last: passes before it rename functions and make new ones.

use tenon_plugin_api::prelude::*;

const GLOBAL_SYMBOL: &str = "global_symbol";

/// Gives public functions their link names.
#[pass(
    name = "relax.AttachGlobalSymbol",
    aliases = ["relax.transform.AttachGlobalSymbol"],
    phase = "builtin",
    idempotent = true
)]
fn attach_global_symbol(mut module: Module, cx: &PassContext) -> Result<Module> {
    let terms = cx.terms();
    let prefix = terms.attrs(module.attrs()).str("system_lib_prefix").unwrap_or_default();
    for (name, func) in module.functions() {
        if func.is_private() || terms.attrs(func.attrs()).term(GLOBAL_SYMBOL).is_some() {
            continue;
        }
        let prefix = if func.is_prim() { prefix } else { "" };
        let symbol = format!("{prefix}{}", terms.str(name));
        let mut rw = func.edit();
        let attrs = cx.with_attr(func.attrs(), GLOBAL_SYMBOL, symbol.into());
        let root = rw.with_attrs(func.view().root(), attrs);
        rw.set_root(root);
        module.insert(name, &rw.finish()?);
    }
    Ok(module)
}
