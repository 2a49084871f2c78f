//! When each tensor is alive.
//!
//! One sweep over the bindings from the last to the first. The time of a node is that of the last binding
//! that may touch what it stands for; since users come later, it is final when the sweep reaches the binding
//! that makes it. An alias passes its time on to what it is made of.

use std::collections::HashMap;

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

use super::ALIGN;

/// A tensor that may share memory with others.
pub(super) struct Tensor {
    /// The binding that makes it.
    pub(super) birth: usize,
    /// The last binding that may touch it.
    pub(super) death: usize,
    /// Its bytes, a multiple of the alignment.
    pub(super) size: u64,
}

/// After the function, or out of its sight.
const FOREVER: u32 = u32::MAX;

pub(super) struct Lifetimes<'a> {
    body: BodyView<'a>,
    /// For each node one more than the last binding that may touch it; 0 for none.
    last: Vec<u32>,
    /// The tensors that are made, last first.
    tensors: Vec<Tensor>,
}

/// What a binding does with its operands.
enum Role {
    Alloc,
    /// Touches them now.
    Use,
    /// Stands for them, or for parts of them.
    Alias,
    /// Anything else: they may be touched at any time.
    Escape,
}

impl<'a> Lifetimes<'a> {
    pub(super) fn of(
        body: BodyView<'a>,
        bindings: LetView<'a>,
        module: &Module,
        cx: &PassContext,
    ) -> Self {
        let mut roles = Roles::new(body, module, cx);
        let mut this = Self { body, last: vec![0; body.len()], tensors: Vec::new() };
        this.touch(bindings.result(), FOREVER);
        for (index, (var, value)) in bindings.bindings().enumerate().rev() {
            let now = index as u32 + 1;
            let death = this.last[var.index()].max(now);
            match roles.of(value) {
                Role::Alloc if death != FOREVER => this.add(value, index, death as usize - 1),
                Role::Alloc => {}
                Role::Use => body.operands(value).iter().for_each(|arg| this.touch(arg, now)),
                Role::Alias if body.kind(value) == Kind::VAR => this.touch(value, death),
                Role::Alias => body.operands(value).iter().for_each(|arg| this.touch(arg, death)),
                Role::Escape => this.touch(value, FOREVER),
            }
        }
        this
    }

    /// The tensors in the order in which they are made.
    pub(super) fn plannable(mut self) -> Vec<Tensor> {
        self.tensors.reverse();
        self.tensors
    }

    /// Notes that what `expr` stands for may be touched at `time`.
    fn touch(&mut self, expr: Expr, time: u32) {
        let mut work = vec![expr];
        while let Some(expr) = work.pop() {
            if self.last[expr.index()] >= time {
                continue;
            }
            self.last[expr.index()] = time;
            if time == FOREVER || self.body.kind(expr) == Kind::TUPLE {
                work.extend(self.body.operands(expr).iter());
            }
        }
    }

    fn add(&mut self, alloc: Expr, birth: usize, death: usize) {
        if let Some(size) = self.size(alloc) {
            self.tensors.push(Tensor { birth, death, size });
        }
    }

    /// The bytes of a tensor; `None` when they are not known.
    fn size(&self, alloc: Expr) -> Option<u64> {
        let (dtype, shape) = self.body.terms().static_tensor(self.body.ty(alloc)?)?;
        let count = shape
            .iter()
            .try_fold(1u64, |count, &extent| count.checked_mul(u64::try_from(extent).ok()?))?;
        dtype.bytes(count)?.checked_next_multiple_of(ALIGN)
    }
}

/// Tells the roles of bindings.
struct Roles<'a> {
    body: BodyView<'a>,
    module: &'a Module,
    alloc: Symbol,
    view: Symbol,
    kill: Symbol,
    /// Whether each function of the module that was asked for is a tensor program.
    is_prim: HashMap<Symbol, bool>,
}

impl<'a> Roles<'a> {
    fn new(body: BodyView<'a>, module: &'a Module, cx: &PassContext) -> Self {
        Self {
            body,
            module,
            alloc: cx.symbol("builtin.alloc_tensor"),
            view: cx.symbol("memory.view"),
            kill: cx.symbol("memory.kill"),
            is_prim: HashMap::new(),
        }
    }

    fn of(&mut self, value: Expr) -> Role {
        match self.body.view(value) {
            View::Var { .. } | View::Tuple(_) | View::TupleGetItem { .. } => Role::Alias,
            View::Constant(_) | View::Global { .. } | View::Shape { .. } | View::Prim { .. } => {
                Role::Use
            }
            View::Call { callee, .. } => match self.body.view(callee) {
                View::Op { name } if name == self.alloc => Role::Alloc,
                View::Op { name } if name == self.view => Role::Alias,
                View::Op { name } if name == self.kill => Role::Use,
                View::Global { name } if self.is_prim(name) => Role::Use,
                _ => Role::Escape,
            },
            _ => Role::Escape,
        }
    }

    fn is_prim(&mut self, name: Symbol) -> bool {
        let module = self.module;
        *self
            .is_prim
            .entry(name)
            .or_insert_with(|| module.get(name).is_some_and(|func| func.is_prim()))
    }
}
