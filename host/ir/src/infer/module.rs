//! Inference over a module: callees before their callers.

use std::sync::Arc;

use tenon_plugin_api::ir::SymbolMap;

use crate::parallel;
use crate::{Function, Module, Symbol};

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
    for wave in waves(module, is_wanted) {
        let signatures = |callee| typed.get(callee).and_then(|func| signature(func));
        let inferred = parallel::map(&wave, |(_, func)| infer(func, &signatures));
        for ((name, func), inferred) in wave.into_iter().zip(inferred) {
            match inferred {
                Ok(new) if Arc::ptr_eq(&new, func) => {}
                Ok(new) => typed.insert(name, new),
                Err(found) => errors.extend(found.into_iter().map(|error| (name, error))),
            }
        }
    }
    match errors.is_empty() {
        true => Ok(typed),
        false => Err(errors),
    }
}

/// The graph functions that are wanted. Those of one wave call none of their own wave; they call those of earlier
/// waves, and on a cycle those of later ones too. Tensor programs are typed as they are built.
fn waves(
    module: &Module,
    is_wanted: impl Fn(Symbol, &Arc<Function>) -> bool,
) -> Vec<Vec<(Symbol, &Arc<Function>)>> {
    enum Step {
        Enter(usize),
        Leave(usize),
    }
    let wanted: Vec<(Symbol, &Arc<Function>)> =
        module.iter().filter(|&(name, func)| !func.is_prim() && is_wanted(name, func)).collect();
    let numbers: SymbolMap<usize> =
        wanted.iter().enumerate().map(|(at, &(name, _))| (name, at)).collect();
    let callees: Vec<Vec<usize>> = parallel::map(&wanted, |(_, func)| {
        func.view().globals().filter_map(|(_, name)| numbers.get(&name).copied()).collect()
    });
    let mut is_entered = vec![false; wanted.len()];
    // The first wave behind each function that is in one.
    let mut next_wave = vec![0; wanted.len()];
    let mut waves: Vec<Vec<(Symbol, &Arc<Function>)>> = Vec::new();
    let mut steps: Vec<Step> = (0..wanted.len()).rev().map(Step::Enter).collect();
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(at) => {
                if std::mem::replace(&mut is_entered[at], true) {
                    continue;
                }
                steps.push(Step::Leave(at));
                steps.extend(callees[at].iter().map(|&callee| Step::Enter(callee)));
            }
            Step::Leave(at) => {
                let behind = callees[at].iter().map(|&callee| next_wave[callee]);
                let wave = behind.max().unwrap_or(0);
                if wave == waves.len() {
                    waves.push(Vec::new());
                }
                waves[wave].push(wanted[at]);
                next_wave[at] = wave + 1;
            }
        }
    }
    waves
}
