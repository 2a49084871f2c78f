//! Gives symbolic dimensions their values.
//!
//! ```ir
//! fn @main(%x: f32[n, 4]) -> f32[n, 4] {         fn @main(%x: f32[8, 4]) -> f32[8, 4] {
//!   %a: f32[n, 4] = exp(%x)                =>      %a: f32[8, 4] = exp(%x)
//!   ret %a                                         ret %a
//! }                                              }
//! ```
//!
//! That is with `vars = ["n=8"]`. The symbol is replaced wherever it stands: in types, in shapes, in dimensions
//! that are passed on, and in attributes. It is an error when no function has it. Functions with symbols of
//! other names are called as before; with `function`, only that one is looked at.

use std::collections::HashSet;

use tenon_plugin_api::ir::DimView;
use tenon_plugin_api::prelude::*;

use crate::specialize::specialize;
use crate::symbols::Symbols;

/// Gives symbolic dimensions their values.
#[pass(
    name = "relax.BindSymbolicVars",
    aliases = ["relax.transform.BindSymbolicVars"],
    phase = "ingest",
    idempotent = false
)]
fn bind_symbolic_vars(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let mut dims = Substitution::new();
    let mut unused: Vec<Symbol> = Vec::new();
    for text in &options.vars {
        let (name, value) = read(text)?;
        dims.bind(cx.symbol(name), cx.dim(value));
        unused.push(cx.symbol(name));
    }
    let wanted = options.function;
    let mut is_found = wanted.is_empty();
    for (name, func) in module.functions() {
        let is_wanted = wanted.is_empty() || cx.terms().str(name) == wanted;
        is_found |= is_wanted;
        if !is_wanted || func.is_prim() {
            continue;
        }
        let symbols = symbols(func.view());
        if symbols.iter().all(|&name| dims.get(name).is_none()) {
            continue;
        }
        unused.retain(|name| !symbols.contains(name));
        module.insert(name, &specialize(&func, &[], &mut dims, cx)?);
    }
    if !is_found {
        return Err(PassError::new(format!("there is no function `@{wanted}`")));
    }
    if let Some(name) = unused.first() {
        let name = cx.terms().str(*name);
        return Err(PassError::new(format!("no function has a symbolic dimension `{name}`")));
    }
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// values of symbols, each as `n=8`
    #[option(default = [])]
    vars: Vec<String>,
    /// the function to look at; all graph functions where it is empty
    #[option(default = "")]
    function: String,
}

/// `n=8`.
fn read(text: &str) -> Result<(&str, i64)> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    match value.trim().parse() {
        Ok(value) if value >= 0 => Ok((name.trim(), value)),
        _ => Err(PassError::new(format!(
            "`{text}` does not give a symbol its value; write it as `n=8`, with an integer that is not negative"
        ))),
    }
}

/// The symbols of a function's types and dimensions.
fn symbols(body: BodyView<'_>) -> HashSet<Symbol> {
    let mut symbols = Symbols::default();
    body.post_order().for_each(|expr| symbols.find_in(body, expr));
    let names = symbols.found.into_iter().map(|dim| match body.terms().dim(dim) {
        DimView::Symbol(name) => name,
        _ => Symbol(0),
    });
    names.collect()
}
