//! Which calls have an effect besides their result.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxBuildHasher;

use crate::{BodyView, Callee, Context, Expr, Module, Symbol, impure_functions};

/// The functions and operators of a module whose calls may have an effect.
pub(super) struct Purity {
    functions: HashSet<Symbol>,
    /// Whether each operator that is called has an effect; what is not known may have one.
    ops: HashMap<Symbol, bool, FxBuildHasher>,
}

impl Purity {
    pub(super) fn of(module: &Module) -> Self {
        let mut ops: HashMap<Symbol, bool, FxBuildHasher> = HashMap::default();
        let cx = module.cx();
        let terms = cx.terms();
        let bodies = module.iter().map(|(name, function)| (name, function.view()));
        let functions = impure_functions(bodies, |op| {
            !*ops.entry(op).or_insert_with(|| {
                !cx.operators().find(terms.str(op)).is_some_and(|op| op.is_pure())
            })
        });
        Self { functions, ops }
    }

    /// Whether a node is a call that may have an effect.
    pub(super) fn is_impure_call(&self, body: BodyView<'_>, expr: Expr) -> bool {
        match body.callee(expr) {
            Some(Callee::Function(name)) => self.functions.contains(&name),
            Some(Callee::Op(op)) => self.ops.get(&op).is_none_or(|&has_effect| has_effect),
            Some(Callee::Value) => true,
            None => false,
        }
    }
}
