//! What calls call, and which functions of a module have an effect.

use std::collections::{HashMap, HashSet};

use crate::ir::{BodyView, Expr, Kind, Symbol};

/// What a call calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// An operator.
    Op(Symbol),
    /// A function or a tensor program of the module.
    Function(Symbol),
    /// A value, which is a closure, or something external.
    Value,
}

impl BodyView<'_> {
    /// What a node calls; `None` for what is no call.
    #[inline]
    pub fn callee(&self, expr: Expr) -> Option<Callee> {
        if self.kind(expr) != Kind::CALL {
            return None;
        }
        let callee = self.raw_node(self.operands(expr).get(0)?);
        Some(match Kind(callee.kind) {
            Kind::OP => Callee::Op(Symbol(callee.data)),
            Kind::GLOBAL => Callee::Function(Symbol(callee.data)),
            _ => Callee::Value,
        })
    }
}

/// The functions whose calls may have an effect besides their result.
///
/// A graph function has one when it calls an operator that has, something external, a value (a closure may do
/// anything), a tensor program directly (which writes to its arguments), or such a function. Found from the
/// causes backwards to the callers, so recursion alone makes nothing impure.
pub fn impure_functions<'a>(
    functions: impl Iterator<Item = (Symbol, BodyView<'a>)>,
    mut is_pure_op: impl FnMut(Symbol) -> bool,
) -> HashSet<Symbol> {
    let mut impure = HashSet::new();
    let mut callers: HashMap<Symbol, Vec<Symbol>> = HashMap::new();
    let mut waiting = Vec::new();
    for (name, body) in functions {
        let is_prim = body.kind(body.root()) == Kind::PRIM_FUNC;
        let mut has_effect = is_prim;
        for expr in body.post_order().filter(|_| !is_prim) {
            match body.callee(expr) {
                Some(Callee::Function(callee)) => callers.entry(callee).or_default().push(name),
                Some(Callee::Op(op)) => has_effect |= !is_pure_op(op),
                Some(Callee::Value) => has_effect = true,
                None => {}
            }
        }
        if has_effect && impure.insert(name) {
            waiting.push(name);
        }
    }
    while let Some(name) = waiting.pop() {
        let callers = callers.remove(&name).unwrap_or_default();
        waiting.extend(callers.into_iter().filter(|&caller| impure.insert(caller)));
    }
    impure
}
