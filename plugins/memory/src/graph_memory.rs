//! The memory that a graph function's values take while it runs.
//!
//! A call makes its result; what only names, groups, projects or reshapes makes nothing and keeps alive what it
//! is made of. Parameters and constants belong to somebody else. A choice, or a call of a function, may give back
//! what it was given, so its result keeps that alive; what it makes inside is not counted. A value whose size is
//! not known counts as nothing.

use rustc_hash::FxHashMap;
use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

use crate::lifetimes::{Made, Operands, Role, bytes_of, lifetimes};

/// How much memory is alive.
pub(crate) struct Usage {
    /// What the bindings make.
    pub(crate) made: Vec<Made>,
    /// For each binding, the bytes that it makes.
    pub(crate) bytes: Vec<u64>,
    /// The most bytes that are alive at a time.
    pub(crate) peak: u64,
    /// The first binding at which that is so.
    pub(crate) peak_at: usize,
}

impl Usage {
    /// The memory of the values of a block, which has `bindings`.
    pub(crate) fn of(
        body: BodyView<'_>,
        block: Expr,
        bindings: LetView<'_>,
        module: &Module,
    ) -> Self {
        let mut roles = GraphRoles::new(body, module);
        let made = lifetimes(body, block, |value| roles.of(value));
        let mut bytes = vec![0; bindings.len()];
        let mut dying: Vec<u64> = vec![0; bindings.len()];
        let mut bytes_of_type: FxHashMap<Option<Type>, u64> = FxHashMap::default();
        for made in &made {
            let (_, value) = bindings.binding(made.birth);
            let known = bytes_of_type.entry(body.ty(value));
            bytes[made.birth] = *known.or_insert_with(|| bytes_of(body, value).unwrap_or(0));
            if let Some(death) = made.death {
                dying[death] += bytes[made.birth];
            }
        }
        let (mut alive, mut peak, mut peak_at) = (0, 0, 0);
        for (index, (&born, dying)) in bytes.iter().zip(dying).enumerate() {
            alive += born;
            if alive > peak {
                (peak, peak_at) = (alive, index);
            }
            alive -= dying;
        }
        Self { made, bytes, peak, peak_at }
    }
}

/// Tells the roles of bindings.
pub(crate) struct GraphRoles<'a> {
    body: BodyView<'a>,
    module: &'a Module,
    ops: FxHashMap<Symbol, Role>,
    is_prim: FxHashMap<Symbol, bool>,
}

impl<'a> GraphRoles<'a> {
    pub(crate) fn new(body: BodyView<'a>, module: &'a Module) -> Self {
        Self { body, module, ops: FxHashMap::default(), is_prim: FxHashMap::default() }
    }

    /// The role of the value of a binding.
    pub(crate) fn of(&mut self, value: Expr) -> Role {
        match self.body.view(value) {
            View::Var { .. } | View::Tuple(_) | View::TupleGetItem { .. } => {
                Role::new(false, Operands::Alias)
            }
            View::If { .. } => Role::new(true, Operands::AliasAll),
            View::Call { callee, .. } => match self.body.view(callee) {
                View::Op { name } => self.op(name),
                View::Global { name } if self.is_prim(name) => Role::new(false, Operands::Use),
                _ => Role::new(true, Operands::AliasAll),
            },
            View::Function { .. } | View::Let(_) => Role::new(false, Operands::Escape),
            _ => Role::new(false, Operands::Use),
        }
    }

    fn op(&mut self, name: Symbol) -> Role {
        let terms = self.body.terms();
        *self.ops.entry(name).or_insert_with(|| match terms.str(name) {
            "reshape" | "memory.view" | "memory.part" | "memory.alloc_tensor" | "make_closure" => {
                Role::new(false, Operands::Alias)
            }
            "memory.kill" | "memory.copy" => Role::new(false, Operands::Use),
            _ => Role::new(true, Operands::Use),
        })
    }

    fn is_prim(&mut self, name: Symbol) -> bool {
        let module = self.module;
        *self
            .is_prim
            .entry(name)
            .or_insert_with(|| module.get(name).is_some_and(|func| func.is_prim()))
    }
}

/// Whether a value is a constant, a tuple or a call without an effect: no choice, and no closure.
pub(crate) fn is_plain(body: BodyView<'_>, value: Expr, effects: &Effects) -> bool {
    let is_inside = matches!(body.kind(value), Kind::IF | Kind::FUNCTION | Kind::LET);
    !is_inside && !effects.has_effect(value)
}
