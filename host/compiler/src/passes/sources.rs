//! Tensor programs that a pass made came from what calls them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ir::{Function, Kind, Module, NodeSource, Symbol};

/// The module with a source for each tensor program that is not in `before` and says of none: that of the first call that
/// names it, by a function that is not in `before` either. Linear in what changed.
pub(super) fn with_sources_of_programs(before: &Module, mut after: Module) -> Module {
    let is_new = |name: Symbol, function: &Arc<Function>| {
        !before.get(name).is_some_and(|old| Arc::ptr_eq(old, function))
    };
    let is_bare = |function: &Function| {
        function.is_prim() && function.view().source(function.view().root()).is_none()
    };
    let (mut bare, mut callers) = (FxHashMap::default(), Vec::new());
    for (name, function) in after.iter().filter(|&(name, function)| is_new(name, function)) {
        if is_bare(function) {
            bare.insert(name, NodeSource::NONE);
        } else if !function.is_prim() {
            callers.push(function.clone());
        }
    }
    if bare.is_empty() {
        return after;
    }
    for caller in callers {
        let body = caller.view();
        for expr in body.post_order().filter(|&expr| body.kind(expr) == Kind::CALL) {
            // The callee, or of `call_tir` the first argument.
            for operand in body.operands(expr).take(2).iter() {
                let node = body.raw_node(operand);
                if node.kind == Kind::GLOBAL.0
                    && let Some(source) = bare.get_mut(&Symbol(node.data))
                    && source.is_none()
                {
                    *source = body.source(expr);
                }
            }
        }
    }
    for (name, source) in bare.into_iter().filter(|(_, source)| !source.is_none()) {
        if let Some(program) = after.get(name).cloned() {
            let root = program.view().root().index();
            let with_root = |index, own| if index == root { source } else { own };
            after.insert(name, program.map_sources(with_root));
        }
    }
    after
}
