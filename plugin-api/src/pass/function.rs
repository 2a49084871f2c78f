//! Functions and modules as a pass holds them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::abi::host::{FunctionHandle, Host, ModuleHandle};
use crate::abi::tables::{RawFunction, RawModule};
use crate::ir::{Attrs, BodyView, Build, Context, Expr, Kind, NodeSpec, Symbol, Term, Type, View};
use crate::pass::{PassContext, PassError, Result, Rewriter};

/// A published graph function or tensor program: immutable and shared. Cloning it counts an owner.
#[derive(Clone)]
pub struct Function(pub(crate) FunctionHandle);

impl Function {
    /// # Safety
    /// `raw` must be a function of `host` that is alive.
    pub(crate) unsafe fn retained(host: &Host, raw: *const RawFunction) -> Self {
        // SAFETY: by this function's contract.
        Self(unsafe { FunctionHandle::retained(host, raw) })
    }

    pub(crate) fn into_raw(self) -> *const RawFunction {
        self.0.into_raw()
    }

    /// Reads it.
    pub fn view(&self) -> BodyView<'_> {
        self.0.body()
    }

    /// Starts to edit it.
    pub fn edit(&self) -> Rewriter {
        Rewriter::edit(self)
    }

    /// Whether it is a tensor program.
    pub fn is_prim(&self) -> bool {
        let body = self.view();
        body.kind(body.root()) == Kind::PRIM_FUNC
    }

    /// Whether it is private to its module.
    pub fn is_private(&self) -> bool {
        let body = self.view();
        body.raw_node(body.root()).flags & 1 == 1
    }

    /// Its attributes.
    pub fn attrs(&self) -> Attrs {
        let body = self.view();
        body.attrs(body.root())
    }

    /// Types of its parameters; `None` where one is not annotated.
    pub fn param_types(&self) -> Vec<Option<Type>> {
        let body = self.view();
        match body.view(body.root()) {
            View::Function { params, .. } | View::PrimFunc { params, .. } => {
                params.iter().map(|param| body.ty(param)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What a graph function evaluates; the statement of a tensor program.
    pub fn result(&self) -> Option<Expr> {
        let body = self.view();
        match body.view(body.root()) {
            View::Function { body, .. } | View::PrimFunc { body, .. } => Some(body),
            _ => None,
        }
    }

    /// Whether both are the very same object.
    pub fn is_same(&self, other: &Function) -> bool {
        self.0.is_same(&other.0)
    }
}

/// A tensor program: the unit of a pass over tensor programs. Reads and edits like a [`Function`].
#[derive(Clone)]
pub struct PrimFunc(pub Function);

impl std::ops::Deref for PrimFunc {
    type Target = Function;

    fn deref(&self) -> &Function {
        &self.0
    }
}

impl From<Function> for PrimFunc {
    fn from(function: Function) -> Self {
        Self(function)
    }
}

impl From<PrimFunc> for Function {
    fn from(program: PrimFunc) -> Self {
        program.0
    }
}

/// A module: functions by name, in order. The pass holds a copy that shares the functions.
pub struct Module {
    handle: ModuleHandle,
    /// For each base that [`Module::fresh_name`] numbered, the number to try next.
    next_number: Mutex<HashMap<String, u64>>,
}

impl Module {
    /// # Safety
    /// `raw` must be a module of `host` that is alive.
    pub(crate) unsafe fn copied(host: &Host, raw: *const RawModule) -> Self {
        // SAFETY: by this function's contract.
        let handle = unsafe { ModuleHandle::copied(host, raw) };
        Self { handle, next_number: Mutex::default() }
    }

    pub(crate) fn into_raw(self) -> *mut RawModule {
        self.handle.into_raw()
    }

    pub(crate) fn handle(&self) -> &ModuleHandle {
        &self.handle
    }

    /// The functions in order, as they are now.
    pub fn functions(&self) -> Vec<(Symbol, Function)> {
        self.handle
            .names()
            .into_iter()
            .filter_map(|name| Some((name, Function(self.handle.get(name)?))))
            .collect()
    }

    /// Puts what `map` makes of each graph function in its place, in order. `map` is given the module as well, and may
    /// add to it and change other functions; it sees what it made so far. Ends when the run is cancelled.
    pub fn map_functions(
        &mut self,
        cx: &PassContext,
        mut map: impl FnMut(&mut Self, Symbol, Function) -> Result<Function>,
    ) -> Result<()> {
        for (name, func) in self.functions() {
            if func.is_prim() {
                continue;
            }
            if cx.is_cancelled() {
                return Err(PassError::cancelled());
            }
            let mapped = map(self, name, func.clone())?;
            if !mapped.is_same(&func) {
                self.insert(name, &mapped);
            }
        }
        Ok(())
    }

    /// The function called `name`.
    pub fn get(&self, name: Symbol) -> Option<Function> {
        self.handle.get(name).map(Function)
    }

    /// Sets a function: in place when there is one of this name, at the end otherwise.
    pub fn insert(&mut self, name: Symbol, function: &Function) {
        self.handle.insert(name, &function.0);
    }

    /// Removes a function.
    pub fn remove(&mut self, name: Symbol) {
        self.handle.remove(name);
    }

    /// The module's attributes.
    pub fn attrs(&self) -> Attrs {
        Attrs(self.handle.attrs().0)
    }

    /// Sets the module's attributes.
    pub fn set_attrs(&mut self, attrs: Attrs) {
        self.handle.set_attrs(Term(attrs.0));
    }

    /// Gives functions other names: each that is a key gets its value, and so does every mention of it. The
    /// order stays. Names must stay distinct.
    pub fn rename(&mut self, names: &HashMap<Symbol, Symbol>) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let functions = self.functions();
        for &(name, _) in &functions {
            self.remove(name);
        }
        for (name, function) in &functions {
            let body = function.view();
            let mut rw = function.edit();
            for (expr, global) in body.globals() {
                if let Some(&new) = names.get(&global) {
                    let renamed = NodeSpec { data: new.0, ..body.spec(expr) };
                    let renamed = rw.push(renamed, &[]);
                    rw.replace(expr, renamed);
                }
            }
            self.insert(*names.get(name).unwrap_or(name), &rw.finish()?);
        }
        Ok(())
    }

    /// A name that no function has: `base`, or `base` with a number.
    pub fn fresh_name(&self, base: &str) -> Symbol {
        let host = self.handle.host();
        let plain = host.symbol(base);
        if self.handle.get(plain).is_none() {
            return plain;
        }
        let mut next = self.next_number.lock().unwrap_or_else(PoisonError::into_inner);
        let next = next.entry(base.to_owned()).or_insert(1);
        loop {
            let name = host.symbol(&format!("{base}_{next}"));
            if self.handle.get(name).is_none() {
                return name;
            }
            *next += 1;
        }
    }
}
