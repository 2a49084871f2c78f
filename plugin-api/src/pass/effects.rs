//! What may be merged, moved over what, and dropped: every pass asks here.
//!
//! ```ir
//! %st = builtin.alloc_tensor() { ty = f32[4] }
//! %w = @write(%x, %st)        // writes memory: what reads memory stays on its side
//! %a = exp(%st)               // reads memory: as `%b`, not as what reads behind `%v`
//! %b = exp(%st)
//! %v = extern "acme"(%st)     // may write what it is given
//! %c = exp(%a)                // reads a value: may stand anywhere behind `%a`
//! ```
//!
//! A tensor that a pure operator gives, or a constant, is a *value*: nobody writes it. *Memory* is what operators
//! make for it, what parameters may stand for, and what calls of functions give; a variable, a tuple, a choice, a view
//! and a closure may stand for memory that they are made of. Any two pieces of memory may be the same one.
//!
//! A call of a tensor program, a function, a closure or something external may write the memory that it is given, by
//! its arguments or by what the closure that is called holds, and no other. Between two such calls memory stays as it
//! is: that is a *stretch* of a body, and calls that read memory may be merged and moved within one. A closure's body
//! has stretches of its own, since it runs when it is called.
//!
//! One pass over the nodes finds the stretches. Where every call is of a pure operator, which is common, that is all
//! there is to know, and answers cost nothing.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::ir::{BodyView, Callee, Expr, Kind, Symbol, impure_functions};
use crate::pass::stretches::{Node, Scan, UNWRITTEN, WORST};
use crate::pass::{Function, Module, OpEffect, OpInfo, PassContext};

/// What the nodes of a function, as it was when this was made, do to memory and read of it. Of nodes that are
/// younger the worst is assumed, unless there is nothing that writes.
pub struct Effects {
    /// By node; `None` where all calls are of pure operators.
    nodes: Option<Vec<Node>>,
    first_write: Option<Expr>,
}

impl Effects {
    /// The effects in a function. Calls of other functions may have any; in a dataflow block they have none.
    pub fn of(func: &Function, cx: &PassContext) -> Self {
        let body = func.view();
        Self::scan(body, body.len(), |op| cx.op_info_of(op), |_| false)
    }

    /// As [`Effects::of`], for the first `len` nodes of a body. `info` says what is known of an operator, `is_pure` which
    /// functions of the module do nothing but compute.
    pub fn scan(
        body: BodyView<'_>,
        len: usize,
        mut info: impl FnMut(Symbol) -> Option<OpInfo>,
        is_pure: impl Fn(Symbol) -> bool,
    ) -> Self {
        let mut effect = |op| info(op).map_or(OpEffect::Any, |info| info.effect);
        let is_plain = |expr: Expr| match body.callee(expr) {
            None => body.kind(expr).is_graph(),
            Some(Callee::Op(op)) => effect(op).is_pure(),
            Some(Callee::Function(_) | Callee::Value) => false,
        };
        let mut nodes = (0..len as u32).map(Expr);
        let is_prim =
            nodes.clone().next_back().is_some_and(|root| body.kind(root) == Kind::PRIM_FUNC);
        if is_prim || nodes.all(is_plain) {
            return Self { nodes: None, first_write: None };
        }
        let (nodes, first_write) = Scan::new(body, len).run(effect, is_pure);
        Self { nodes: Some(nodes), first_write }
    }

    /// Whether every call of the function is one of a pure operator: then nothing is memory that anybody writes, and
    /// what depends on nothing else may be merged, moved and dropped.
    pub fn is_pure(&self) -> bool {
        self.nodes.is_none()
    }

    /// Whether evaluating a node, with all that is nested in it, does more than to give a result: it must be
    /// evaluated once, and where it stands. Making a closure has no effect.
    pub fn has_effect(&self, expr: Expr) -> bool {
        self.node(expr).is_some_and(|node| node.has_effect)
    }

    /// Which contents of memory a node sees: 0 when it reads none. Equal calls without effects may be merged when
    /// their versions are equal.
    pub fn version(&self, expr: Expr) -> u32 {
        self.node(expr).filter(|node| node.reads).map_or(0, |node| node.stretch)
    }

    /// Whether `expr` gives the same where `to` is evaluated, earlier or later, as long as what it reads is bound
    /// there.
    pub fn may_move(&self, expr: Expr, to: Expr) -> bool {
        let (Some(node), Some(to)) = (self.node(expr), self.node(to)) else { return true };
        let is_there = node.stretch == to.stretch && node.stretch != WORST.stretch;
        !node.has_effect && (!node.reads || is_there)
    }

    /// Whether nothing writes memory between where `a` and `b` are evaluated: what reads at one gives the same at
    /// the other.
    pub fn is_quiet_between(&self, a: Expr, b: Expr) -> bool {
        let (Some(a), Some(b)) = (self.node(a), self.node(b)) else { return true };
        a.stretch == b.stretch && a.stretch != WORST.stretch
    }

    /// Whether a value may be memory that somebody writes, or hold some. It must not stand for the value of a call
    /// that reads it.
    pub fn is_memory(&self, expr: Expr) -> bool {
        self.node(expr).is_some_and(|node| node.is_memory)
    }

    /// Whether a value may be memory that this function makes, or hold some.
    pub fn is_own_memory(&self, expr: Expr) -> bool {
        self.node(expr).is_some_and(|node| node.is_own)
    }

    /// The first call that may write memory.
    pub fn first_write(&self) -> Option<Expr> {
        self.first_write
    }

    fn node(&self, expr: Expr) -> Option<Node> {
        let nodes = self.nodes.as_ref()?;
        let younger = match self.first_write {
            Some(_) => WORST,
            None => Node { has_effect: true, ..UNWRITTEN },
        };
        Some(nodes.get(expr.index()).copied().unwrap_or(younger))
    }
}

/// The effects in the functions of a module, which knows which of its functions have none.
pub struct ModuleEffects {
    /// The module as it was when this was made.
    functions: Vec<(Symbol, Function)>,
    /// Those without effects, when somebody asked.
    pure: OnceCell<HashSet<Symbol>>,
}

impl ModuleEffects {
    /// The effects in a module as it is now.
    pub fn of(module: &Module) -> Self {
        Self { functions: module.functions(), pure: OnceCell::new() }
    }

    /// The effects in a function. Calls of functions that are younger than this may have any.
    pub fn of_function(&self, func: &Function, cx: &PassContext) -> Effects {
        let body = func.view();
        let is_pure = |name| self.pure.get_or_init(|| self.find_pure(cx)).contains(&name);
        Effects::scan(body, body.len(), |op| cx.op_info_of(op), is_pure)
    }

    fn find_pure(&self, cx: &PassContext) -> HashSet<Symbol> {
        let bodies = self.functions.iter().map(|(name, func)| (*name, func.view()));
        let impure = impure_functions(bodies, |op| cx.is_pure_op(op));
        let names = self.functions.iter().map(|&(name, _)| name);
        names.filter(|name| !impure.contains(name)).collect()
    }
}
