//! Which calls have an effect besides their result.

use std::collections::HashMap;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::ir::{BodyView, Expr, Kind, Module, Symbol, View};
use crate::ops;

/// The functions and operators of a module whose calls may have an effect.
///
/// A graph function has one when it calls an operator that has, something external, a value (a closure may do
/// anything), a tensor program directly (which writes to its arguments), or such a function. Found from the
/// causes backwards to the callers, so recursion alone makes nothing impure.
pub(super) struct Purity {
    functions: FxHashSet<Symbol>,
    /// Whether each operator that is called has an effect; what is not known may have one.
    ops: HashMap<Symbol, bool, FxBuildHasher>,
}

impl Purity {
    pub(super) fn of(module: &Module) -> Self {
        let mut purity = Self { functions: FxHashSet::default(), ops: HashMap::default() };
        let mut callers: HashMap<Symbol, Vec<Symbol>, FxBuildHasher> = HashMap::default();
        let mut waiting = Vec::new();
        for (name, function) in module.iter() {
            let body = function.view();
            let mut has_effect = function.is_prim();
            for expr in body.post_order().filter(|_| !function.is_prim()) {
                match callee(body, expr) {
                    Some(Callee::Global(callee)) => callers.entry(callee).or_default().push(name),
                    Some(Callee::Op(op)) => {
                        has_effect |= *purity.ops.entry(op).or_insert_with(|| {
                            !ops::find(body.terms().str(op)).is_some_and(|op| op.is_pure)
                        });
                    }
                    Some(Callee::Value) => has_effect = true,
                    None => {}
                }
            }
            if has_effect && purity.functions.insert(name) {
                waiting.push(name);
            }
        }
        while let Some(name) = waiting.pop() {
            let callers = callers.remove(&name).unwrap_or_default();
            waiting.extend(callers.into_iter().filter(|&caller| purity.functions.insert(caller)));
        }
        purity
    }

    /// Whether a node is a call that may have an effect.
    pub(super) fn is_impure_call(&self, body: BodyView<'_>, expr: Expr) -> bool {
        match callee(body, expr) {
            Some(Callee::Global(name)) => self.functions.contains(&name),
            Some(Callee::Op(op)) => self.ops.get(&op).is_none_or(|&has_effect| has_effect),
            Some(Callee::Value) => true,
            None => false,
        }
    }
}

enum Callee {
    Global(Symbol),
    Op(Symbol),
    Value,
}

fn callee(body: BodyView<'_>, expr: Expr) -> Option<Callee> {
    if body.kind(expr) != Kind::CALL {
        return None;
    }
    let View::Call { callee, .. } = body.view(expr) else { return None };
    Some(match body.view(callee) {
        View::Global { name } => Callee::Global(name),
        View::Op { name } => Callee::Op(name),
        _ => Callee::Value,
    })
}
