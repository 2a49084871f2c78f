//! The private graph functions all of whose calls are known.

use tenon_plugin_api::ir::SymbolMap;
use tenon_plugin_api::prelude::*;

/// The functions that only this module's direct calls reach, by their names: they may be changed together with
/// all of their calls.
pub(crate) fn closed_functions(module: &Module) -> SymbolMap<Function> {
    let graph = CallGraph::of(module);
    let functions = module.functions().into_iter();
    functions
        .filter(|(name, func)| func.is_private() && !func.is_prim() && !graph.is_value(*name))
        .collect()
}

/// What a call of a function of the module calls.
pub(crate) fn called(body: BodyView<'_>, expr: Expr) -> Option<Symbol> {
    if body.kind(expr) != Kind::CALL {
        return None;
    }
    let View::Call { callee, .. } = body.view(expr) else { return None };
    match body.view(callee) {
        View::Global { name } => Some(name),
        _ => None,
    }
}
