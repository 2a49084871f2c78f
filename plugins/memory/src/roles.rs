//! What bindings do with memory that is made explicitly.

use rustc_hash::FxHashMap;
use tenon_plugin_api::prelude::*;

use crate::lifetimes::{Operands, Role};

/// Tells the roles of bindings.
pub(crate) struct Roles<'a> {
    body: BodyView<'a>,
    module: &'a Module,
    alloc_tensor: Symbol,
    storage: Symbol,
    tensor_in_storage: Symbol,
    view: Symbol,
    part: Symbol,
    copy: Symbol,
    kill: Symbol,
    closure: Symbol,
    repeat: Symbol,
    /// Whether each function of the module that was asked for is a tensor program.
    is_prim: FxHashMap<Symbol, bool>,
}

impl<'a> Roles<'a> {
    pub(crate) fn new(body: BodyView<'a>, module: &'a Module, cx: &PassContext) -> Self {
        Self {
            body,
            module,
            alloc_tensor: cx.symbol("builtin.alloc_tensor"),
            storage: cx.symbol("memory.alloc_storage"),
            tensor_in_storage: cx.symbol("memory.alloc_tensor"),
            view: cx.symbol("memory.view"),
            part: cx.symbol("memory.part"),
            copy: cx.symbol("memory.copy"),
            kill: cx.symbol("memory.kill"),
            closure: cx.symbol("make_closure"),
            repeat: cx.symbol("loop"),
            is_prim: FxHashMap::default(),
        }
    }

    /// The role of the value of a binding.
    pub(crate) fn of(&mut self, value: Expr) -> Role {
        let escape = Role::new(false, Operands::Escape);
        match self.body.view(value) {
            View::Var { .. } | View::Tuple(_) | View::TupleGetItem { .. } => {
                Role::new(false, Operands::Alias)
            }
            View::Constant(_) | View::Global { .. } | View::Shape { .. } | View::Prim { .. } => {
                Role::new(false, Operands::Use)
            }
            View::If { .. } => Role::new(false, Operands::Choice),
            View::Call { callee, .. } => match self.body.view(callee) {
                View::Op { name } if name == self.alloc_tensor || name == self.storage => {
                    Role::new(true, Operands::Use)
                }
                View::Op { name } if name == self.tensor_in_storage => {
                    Role::new(true, Operands::Alias)
                }
                View::Op { name } if name == self.view || name == self.part => {
                    Role::new(false, Operands::Alias)
                }
                View::Op { name } if name == self.kill || name == self.copy => {
                    Role::new(false, Operands::Use)
                }
                // Its result may be what it was given to carry.
                View::Op { name } if name == self.repeat => Role::new(false, Operands::AliasAll),
                View::Op { name } if name == self.closure => Role::new(false, Operands::Alias),
                View::Global { name } if self.is_prim(name) => Role::new(false, Operands::Use),
                // It may give back what it was given, and keeps none for later.
                View::Global { .. } => Role::new(false, Operands::AliasAll),
                _ => escape,
            },
            _ => escape,
        }
    }

    /// Whether a value is a tensor that has no place in a storage yet.
    pub(crate) fn is_unplaced(&self, value: Expr) -> bool {
        self.is_call_of(value, self.alloc_tensor)
    }

    /// The tensor that a value is a view or a part of, or another name for.
    pub(crate) fn viewed(&self, value: Expr) -> Option<Expr> {
        match self.body.view(value) {
            View::Var { .. } => Some(value),
            _ => {
                let is_view =
                    self.is_call_of(value, self.view) || self.is_call_of(value, self.part);
                is_view.then(|| self.body.operands(value).at(1))
            }
        }
    }

    /// What a value ends the life of, if it does.
    pub(crate) fn killed(&self, value: Expr) -> Option<Expr> {
        self.is_call_of(value, self.kill).then(|| self.body.operands(value).at(1))
    }

    fn is_call_of(&self, value: Expr, op: Symbol) -> bool {
        let View::Call { callee, .. } = self.body.view(value) else { return false };
        matches!(self.body.view(callee), View::Op { name } if name == op)
    }

    fn is_prim(&mut self, name: Symbol) -> bool {
        let module = self.module;
        *self
            .is_prim
            .entry(name)
            .or_insert_with(|| module.get(name).is_some_and(|func| func.is_prim()))
    }
}
