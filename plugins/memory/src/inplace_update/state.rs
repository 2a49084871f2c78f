//! Parameters of a function that it gives back with something put into them.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::{Callee, LetView};
use tenon_plugin_api::prelude::*;

use super::program::Overwrite;

/// The calls of programs that copy a parameter, which nothing else reads, into a result of the function, and put something into
/// it; `overwrites` says what a program does.
pub(super) fn updated_parameters(
    body: BodyView<'_>,
    bindings: LetView<'_>,
    mut overwrites: impl FnMut(Symbol) -> Vec<Overwrite>,
) -> HashMap<Expr, Overwrite> {
    let View::Function { params, .. } = body.view(body.root()) else { return HashMap::new() };
    // Most functions call no program that begins with a copy, and are left after one look at the calls.
    let mut begins_with_copy = |name| overwrites(name).iter().any(|it| it.is_copied);
    let mut calls = bindings.bindings().filter_map(|(_, value)| body.callee(value));
    if !calls.any(|it| matches!(it, Callee::Function(name) if begins_with_copy(name))) {
        return HashMap::new();
    }
    let params: HashSet<Expr> = params.iter().collect();
    let mut uses: SideTable<u32> = SideTable::new(body, 0);
    for expr in body.post_order().filter(|&expr| expr != body.root()) {
        body.operands(expr).iter().for_each(|operand| uses[operand] += 1);
    }
    let results = results_of(body, bindings.result());
    let mut touched = SideTable::new(body, false);
    let mut found = HashMap::new();
    for (_, value) in bindings.bindings() {
        if let Some(Callee::Function(name)) = body.callee(value)
            && let View::Call { args, .. } = body.view(value)
        {
            let update = overwrites(name).into_iter().find(|overwrite| {
                let (from, to) = (args.at(overwrite.input), args.at(overwrite.output));
                let is_state = params.contains(&from) && uses[from] == 1;
                let is_new = results.contains(&to) && !touched[to];
                overwrite.is_copied && is_state && is_new && body.ty(from) == body.ty(to)
            });
            found.extend(update.map(|update| (value, update)));
        }
        body.operands(value).iter().for_each(|operand| touched[operand] = true);
    }
    found
}

/// The tensors that a function gives.
fn results_of(body: BodyView<'_>, result: Expr) -> HashSet<Expr> {
    let mut found = HashSet::new();
    let mut pending = vec![result];
    while let Some(expr) = pending.pop() {
        match body.view(expr) {
            View::Tuple(fields) => pending.extend(fields.iter().filter(|it| found.insert(*it))),
            _ => {
                found.insert(expr);
            }
        }
    }
    found
}
