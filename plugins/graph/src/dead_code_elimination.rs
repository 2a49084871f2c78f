//! Removes bindings that nothing reads.
//!
//! ```ir
//! fn @main(%x: f32[4]) {          fn @main(%x: f32[4]) {
//!   %a = exp(%x)           =>       %b = negative(%x)
//!   %b = negative(%x)               ret %b
//!   ret %b                        }
//! }
//! ```
//!
//! A binding survives when something that survives reads its variable, or when its value has an effect
//! ([`Effects`]): a call of anything but an operator that is known to be pure. Users stand behind what they read, so
//! one sweep from the result backwards settles every binding, and the pass is idempotent.
//!
//! Whole functions are left alone: removing unused ones is `relax.RemoveUnusedFunctions`.

use tenon_plugin_api::prelude::*;

/// Removes bindings that nothing reads.
#[pass(
    name = "relax.DeadCodeElimination",
    aliases = ["relay._transform.DeadCodeElimination", "relax.transform.DeadCodeElimination",
               "raf.pass_.DeadCodeElimination"],
    opt_level = 1,
    phase = "optimize",
    until = "builtin",
    idempotent = true
)]
fn dead_code_elimination(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let live = Live::of(body, &Effects::of(&func, cx));
    let mut rw = func.edit();
    for expr in rw.post_order() {
        let View::Let(bindings) = body.view(expr) else { continue };
        let is_live = |var: Expr| live.vars[var];
        if !live.nodes[expr] || bindings.bindings().all(|(var, _)| is_live(var)) {
            continue;
        }
        let blocks: Vec<(bool, Vec<(Expr, Expr)>)> = bindings
            .blocks()
            .into_iter()
            .map(|block| {
                let kept = (block.first..block.first + block.len)
                    .map(|index| bindings.binding(index))
                    .filter(|&(var, _)| is_live(var))
                    .collect();
                (block.is_dataflow, kept)
            })
            .collect();
        if blocks.iter().all(|(_, kept)| kept.is_empty()) {
            rw.replace(expr, bindings.result());
            continue;
        }
        let kept = rw.let_blocks(&blocks, bindings.result());
        rw.set_type(kept, body.ty(expr));
        rw.replace(expr, kept);
    }
    rw.finish()
}

/// What is needed, walking from the root backwards.
struct Live {
    nodes: SideTable<bool>,
    /// For variables bound by a `let`, whether the binding survives.
    vars: SideTable<bool>,
}

impl Live {
    fn of(body: BodyView<'_>, effects: &Effects) -> Self {
        let mut live =
            Self { nodes: SideTable::new(body, false), vars: SideTable::new(body, false) };
        // For each variable that a live `let` binds, its value, once the `let` was reached.
        let mut value_of: SideTable<Option<Expr>> = SideTable::new(body, None);
        let mut work = vec![body.root()];
        while let Some(expr) = work.pop() {
            if std::mem::replace(&mut live.nodes[expr], true) {
                continue;
            }
            match body.view(expr) {
                View::Let(bindings) => {
                    for (var, value) in bindings.bindings() {
                        value_of[var] = Some(value);
                        if live.nodes[var] || effects.has_effect(value) {
                            live.vars[var] = true;
                            work.extend([var, value]);
                        }
                    }
                    work.push(bindings.result());
                }
                View::Var { .. } => {
                    live.vars[expr] = true;
                    work.extend(value_of[expr]);
                }
                _ => work.extend(body.operands(expr).iter()),
            }
        }
        live
    }
}
