//! Gives functions the names that they are linked by.
//!
//! ```ir
//! fn @f(%x: f32[4]) { global_symbol = "run" } { … }        fn @run(%x: f32[4]) { … } { … }
//! private fn @run(%x: f32[4]) { … }                   =>   private fn @run_1(%x: f32[4]) { … }
//! fn @main(%x: f32[4]) { … @f(@run(%x)) … }                fn @main(%x: f32[4]) { … @run(@run_1(%x)) … }
//! ```
//!
//! A public function with an attribute `global_symbol` is called by that name from outside; inside of the
//! module it gets the same one. A private function that has the name takes another one, with a number. Two
//! public functions of one name are an error, since nobody could tell them apart.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

/// Gives functions the names that they are linked by.
#[pass(
    name = "relax.NormalizeGlobalVar",
    aliases = ["relax.transform.NormalizeGlobalVar"],
    opt_level = 0,
    phase = "ingest",
    until = "builtin",
    idempotent = true
)]
fn normalize_global_var(mut module: Module, cx: &PassContext) -> Result<Module> {
    let terms = cx.terms();
    let functions = module.functions();
    let mut renamed: HashMap<Symbol, Symbol> = HashMap::new();
    // The function that each link name is of.
    let mut owners: HashMap<Symbol, Symbol> = HashMap::new();
    for (name, func) in functions.iter().filter(|(_, func)| !func.is_private()) {
        let link = terms.attrs(func.attrs()).str("global_symbol").map(|link| cx.symbol(link));
        let link = link.unwrap_or(*name);
        if let Some(other) = owners.insert(link, *name) {
            let [a, b, link] = [other, *name, link].map(|name| terms.str(name));
            return Err(PassError::new(format!(
                "@{a} and @{b} are both linked as `{link}`; give one another `global_symbol`"
            )));
        }
        if link != *name {
            renamed.insert(*name, link);
        }
    }
    for (name, _) in functions.iter().filter(|(_, func)| func.is_private()) {
        if owners.contains_key(name) {
            let free = |new: &Symbol| !owners.contains_key(new) && module.get(*new).is_none();
            let numbered = |number| cx.symbol(&format!("{}_{number}", terms.str(*name)));
            renamed.extend((1..).map(numbered).find(free).map(|new| (*name, new)));
        }
    }
    module.rename(&renamed)?;
    Ok(module)
}
