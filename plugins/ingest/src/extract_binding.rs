//! Has a function return one of its bindings.
//!
//! ```ir
//! fn @main(%x: f32[4]) {          fn @main(%x: f32[4]) {
//!   %a = exp(%x)                    %a = exp(%x)
//!   %b = negative(%a)        =>     %b = negative(%a)
//!   %c = sum(%b)                    ret %b
//!   ret %c                        }
//! }
//! ```
//!
//! That is with `var = "b"`: a look at a value in the middle of a network, or the part of a network up to it.
//! The bindings behind go; of those before, `relax.DeadCodeElimination` removes what is not needed. Variables that
//! `ignore` names become parameters, behind those that are there, and are not computed. The function gives another
//! result than before, which is what is asked for.

use std::collections::HashSet;

use tenon_plugin_api::prelude::*;

/// Has a function return one of its bindings.
#[pass(
    name = "raf.ExtractBinding",
    aliases = ["raf.pass_.ExtractBinding"],
    phase = "ingest",
    requires = ["relax.Normalize"],
    idempotent = false
)]
fn extract_binding(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let Options { var: wanted, function: name, ignore } = &options;
    if wanted.is_empty() {
        return Ok(module);
    }
    let symbol = cx.symbol(name);
    let func = module.get(symbol).filter(|func| !func.is_prim());
    let Some(func) = func else {
        return Err(PassError::new(format!("there is no graph function `@{name}`")));
    };
    let body = func.view();
    let missing = |var: &str| PassError::new(format!("@{name} binds no variable `{var}`"));
    let block = func.result().ok_or_else(|| missing(wanted))?;
    let View::Let(bindings) = body.view(block) else { return Err(missing(wanted)) };
    let name_of = |var: Expr| cx.terms().str(Symbol(body.raw_node(var).data));
    let last = bindings.bindings().position(|(var, _)| name_of(var) == *wanted);
    let last = last.ok_or_else(|| missing(wanted))?;

    let mut ignored: HashSet<&str> = HashSet::new();
    for var in ignore {
        if !bindings.bindings().take(last).any(|(bound, _)| name_of(bound) == var) {
            return Err(PassError::new(format!(
                "@{name} binds no variable `{var}` before `{wanted}`"
            )));
        }
        ignored.insert(var);
    }
    let mut params = body.operands(body.root()).to_vec();
    params.pop();
    let mut rw = func.edit();
    let mut list = LetList::new();
    for part in bindings.blocks() {
        for at in (part.first..part.first + part.len).filter(|&at| at <= last) {
            let (var, value) = bindings.binding(at);
            match ignored.contains(name_of(var)) {
                true => params.push(var),
                false => list.bind(part.is_dataflow, var, value),
            }
        }
    }
    let (result, _) = bindings.binding(last);
    let block = list.finish(&mut rw, result);
    let operands: Vec<Expr> = params.into_iter().chain([block]).collect();
    let root = rw.push(NodeSpec { ty: None, data: 0, ..body.spec(body.root()) }, &operands);
    rw.set_root(root);
    module.insert(symbol, &rw.finish()?);
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// the variable to return; nothing is done where it is empty
    #[option(default = "")]
    var: String,
    /// the function that binds it
    #[option(default = "main")]
    function: String,
    /// variables that become parameters
    #[option(default = [])]
    ignore: Vec<String>,
}
