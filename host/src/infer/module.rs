//! Inference over a module: callees before their callers.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use crate::ir::{Function, Kind, Module, Symbol};

use super::{InferError, infer, signature};

/// The module with all types inferred. A function that calls itself, directly or over others, must declare
/// its result.
pub fn infer_module(module: &Module) -> Result<Module, Vec<(Symbol, InferError)>> {
    infer_where(module, |_, _| true)
}

/// As [`infer_module`], for the functions that differ from those of `before`, which has all types.
pub fn infer_changed(
    before: &Module,
    module: &Module,
) -> Result<Module, Vec<(Symbol, InferError)>> {
    if module.is_identical(before) {
        return Ok(module.clone());
    }
    infer_where(module, |name, func| !before.get(name).is_some_and(|old| Arc::ptr_eq(old, func)))
}

fn infer_where(
    module: &Module,
    is_wanted: impl Fn(Symbol, &Arc<Function>) -> bool,
) -> Result<Module, Vec<(Symbol, InferError)>> {
    let mut typed = module.clone();
    let mut errors = Vec::new();
    for name in callees_first(module) {
        let Some(func) = module.get(name).filter(|func| is_wanted(name, func)) else { continue };
        match infer(func, &|callee| typed.get(callee).and_then(|func| signature(func))) {
            Ok(func) => typed.insert(name, func),
            Err(found) => errors.extend(found.into_iter().map(|error| (name, error))),
        }
    }
    match errors.is_empty() {
        true => Ok(typed),
        false => Err(errors),
    }
}

/// The names of the functions, each after those that it calls; on a cycle in no special order.
fn callees_first(module: &Module) -> Vec<Symbol> {
    enum Step {
        Enter(Symbol),
        Leave(Symbol),
    }
    let mut order = Vec::with_capacity(module.len());
    let mut is_seen: HashMap<Symbol, (), FxBuildHasher> = HashMap::default();
    let names: Vec<Symbol> = module.iter().map(|(name, _)| name).collect();
    let mut steps: Vec<Step> = names.into_iter().rev().map(Step::Enter).collect();
    while let Some(step) = steps.pop() {
        let name = match step {
            Step::Leave(name) => {
                order.push(name);
                continue;
            }
            Step::Enter(name) => name,
        };
        let Some(func) = module.get(name) else { continue };
        if is_seen.insert(name, ()).is_some() {
            continue;
        }
        steps.push(Step::Leave(name));
        let body = func.view();
        let globals = body.post_order().filter(|&expr| body.kind(expr) == Kind::GLOBAL);
        steps.extend(globals.map(|expr| Step::Enter(Symbol(body.raw_node(expr).data))));
    }
    order
}
