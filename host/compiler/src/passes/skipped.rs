//! Functions that are not to be optimized: `SkipOptimization = true`.
//!
//! A pass that says level 1 or more leaves such a function alone. One over functions is not given it. One over modules
//! sees all of them, since it may have to know who calls whom; what it did to such a function is put back, with what
//! this names and is gone. Where the rest makes no sense without what it did (a function that is called takes other
//! arguments now), the whole module is put back.

use std::sync::Arc;

use crate::infer::signature;
use crate::ir::{Attrs, Function, Module, Symbol};

/// The attribute of such a function: it is compiled as at level 0.
const SKIP: &str = "SkipOptimization";

/// Whether a function is left alone.
pub(super) fn is_skipped(function: &Function) -> bool {
    let body = function.view();
    let attrs = body.attrs(body.root());
    if attrs == Attrs::NONE {
        return false;
    }
    let attrs = body.terms().attrs(attrs);
    // As with `Primitive = 1`, a number says so too.
    attrs.bool(SKIP) == Some(true) || attrs.int(SKIP).is_some_and(|value| value != 0)
}

/// What a pass made of a module, but for the functions that are left alone.
pub(super) enum Spared {
    /// It left them alone by itself.
    AsItIs,
    /// The module with these functions as they were.
    PutBack(Module),
    /// Something that fits this function only as the pass left it.
    Misfit(Symbol),
}

/// Puts back what a pass over `before` did to functions that are left alone.
pub(super) fn spare(before: &Module, after: &Module) -> Spared {
    let is_changed = |module: &Module, name, old: &Arc<Function>| {
        !module.get(name).is_some_and(|new| Arc::ptr_eq(new, old))
    };
    let mut work: Vec<(Symbol, &Arc<Function>)> = before
        .iter()
        .filter(|(name, function)| is_skipped(function) && is_changed(after, *name, function))
        .collect();
    if work.is_empty() {
        return Spared::AsItIs;
    }
    let mut module = after.clone();
    let mut put_back = Vec::new();
    while let Some((name, old)) = work.pop() {
        if !is_changed(&module, name, old) {
            continue;
        }
        module.insert(name, old.clone());
        put_back.push((name, old));
        let gone = |(_, name): (_, Symbol)| match module.get(name) {
            None => Some((name, before.get(name)?)),
            Some(_) => None,
        };
        work.extend(old.view().globals().filter_map(gone));
    }
    let has_other_type = |name: Symbol| match (before.get(name), after.get(name)) {
        (Some(old), Some(new)) => !Arc::ptr_eq(old, new) && signature(old) != signature(new),
        _ => false,
    };
    // Those that call it, and those that it calls.
    let misfit = put_back.iter().find(|(name, old)| {
        has_other_type(*name) || old.view().globals().any(|(_, callee)| has_other_type(callee))
    });
    match misfit {
        Some((name, _)) => Spared::Misfit(*name),
        None => Spared::PutBack(module),
    }
}
