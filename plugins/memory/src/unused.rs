//! Programs that others took the place of.

use std::collections::HashSet;

use tenon_plugin_api::prelude::*;

/// Removes those of some private programs that nothing calls any more.
pub(crate) fn remove_unused(module: &mut Module, replaced: impl Iterator<Item = Symbol>) {
    let replaced: HashSet<Symbol> = replaced.collect();
    if replaced.is_empty() {
        return;
    }
    let calls = CallGraph::of(module);
    for name in replaced.into_iter().filter(|&name| calls.uses(name) == 0) {
        if module.get(name).is_some_and(|program| program.is_private()) {
            module.remove(name);
        }
    }
}
