//! Merges tensor programs that differ in nothing but the names of their symbols.
//!
//! ```ir
//! %a = call_tir(@exp, %x) { out = f32[n] }              %a = call_tir(@exp, %x) { out = f32[n] }
//! %b = call_tir(@exp_1, %y) { out = f32[m] }      =>    %b = call_tir(@exp, %y) { out = f32[m] }
//! private prim @exp(%A: f32[n], …) { … }                private prim @exp(%A: f32[n], …) { … }
//! private prim @exp_1(%A: f32[m], …) { … }
//! ```
//!
//! A program binds its symbols by the shapes of what it is given, so what they are called says nothing. Where a model finds sizes as it
//! runs, each has a name of its own, and so had each program: a detector that chooses boxes class by class had some hundreds of them.
//! Programs are compared with their symbols numbered in the order of the parameters. The first of equal ones stays.

use std::collections::HashMap;

use tenon_plugin_api::ir::{DimView, Structure, Substitution};
use tenon_plugin_api::prelude::*;

use crate::symbols::Symbols;

/// Merges tensor programs that differ in nothing but the names of their symbols.
#[pass(
    name = "tir.MergeFunctions",
    opt_level = 1,
    phase = "fuse",
    after = ["relax.FuseTIR"],
    idempotent = true
)]
fn merge_functions(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut first: HashMap<Structure, Symbol> = HashMap::new();
    let mut merged: HashMap<Symbol, Symbol> = HashMap::new();
    for (name, func) in module.functions() {
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        if !func.is_prim() || !func.is_private() {
            continue;
        }
        let Some(structure) = numbered(&func, cx)? else { continue };
        let kept = *first.entry(structure).or_insert(name);
        if kept != name {
            merged.insert(name, kept);
        }
    }
    if merged.is_empty() {
        return Ok(module);
    }
    module.map_functions(cx, |_, _, func| renamed(&func, &merged, cx))?;
    merged.keys().for_each(|&name| module.remove(name));
    Ok(module)
}

/// The structure of a program with its symbols numbered; none where it has no symbols.
fn numbered(func: &Function, cx: &PassContext) -> Result<Option<Structure>> {
    let mut symbols = Symbols::new(cx.terms());
    func.param_types().into_iter().for_each(|ty| symbols.add(ty.map(Term::from)));
    if symbols.found.is_empty() {
        return Ok(None);
    }
    let mut rw = Rewriter::new(cx);
    let mut numbers = Substitution::new();
    for (number, &dim) in symbols.found.iter().enumerate() {
        if let DimView::Symbol(name) = cx.terms().dim(dim) {
            numbers.bind(name, cx.dim_symbol(&number.to_string()));
        }
    }
    let root = rw.import_with(func, func.view().root(), &mut HashMap::new(), &mut numbers);
    rw.set_root(root);
    Ok(Some(rw.finish()?.view().structure()))
}

/// A function that names programs by those that stay.
fn renamed(
    func: &Function,
    merged: &HashMap<Symbol, Symbol>,
    cx: &PassContext,
) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        if let View::Global { name } = body.view(expr)
            && let Some(&kept) = merged.get(&name)
        {
            let global = rw.global(cx.terms().str(kept));
            rw.replace(expr, global);
        }
    }
    rw.finish()
}
