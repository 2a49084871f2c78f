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
    for (name, func) in callees_first(module, is_wanted) {
        match infer(func, &|callee| typed.get(callee).and_then(|func| signature(func))) {
            Ok(new) if Arc::ptr_eq(&new, func) => {}
            Ok(new) => typed.insert(name, new),
            Err(found) => errors.extend(found.into_iter().map(|error| (name, error))),
        }
    }
    match errors.is_empty() {
        true => Ok(typed),
        false => Err(errors),
    }
}

/// The graph functions that are wanted, each after those that it calls; on a cycle in no special order.
/// Tensor programs are typed as they are built.
fn callees_first(
    module: &Module,
    is_wanted: impl Fn(Symbol, &Arc<Function>) -> bool,
) -> Vec<(Symbol, &Arc<Function>)> {
    enum Step<'a> {
        Enter(Symbol),
        Leave(Symbol, &'a Arc<Function>),
    }
    let mut order = Vec::new();
    let mut unseen: HashMap<Symbol, &Arc<Function>, FxBuildHasher> =
        module.iter().filter(|&(name, func)| !func.is_prim() && is_wanted(name, func)).collect();
    let mut steps: Vec<Step<'_>> = module.iter().map(|(name, _)| Step::Enter(name)).collect();
    steps.reverse();
    while let Some(step) = steps.pop() {
        let name = match step {
            Step::Leave(name, func) => {
                order.push((name, func));
                continue;
            }
            Step::Enter(name) => name,
        };
        let Some(func) = unseen.remove(&name) else { continue };
        steps.push(Step::Leave(name, func));
        let body = func.view();
        let globals = body.post_order().filter(|&expr| body.kind(expr) == Kind::GLOBAL);
        steps.extend(globals.map(|expr| Step::Enter(Symbol(body.raw_node(expr).data))));
    }
    order
}
