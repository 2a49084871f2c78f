//! What a pass holds of the host: functions, transactions, modules, each with an owner of its own.

use std::marker::PhantomData;

use abi_stable::std_types::RSlice;

use super::super::layout::Table;
use super::super::read::{self, BodyRecords};
use super::super::records::{RawBody, RawNode};
use super::super::tables::{HostRules, NONE, RawEdit, RawFunction, RawModule};
use super::Host;
use crate::ir::{BodyView, Expr, NodeSpec, Symbol, Term};

impl Host {
    /// Starts a transaction.
    pub(crate) fn edit(&self, base: Option<&FunctionHandle>) -> TransactionHandle {
        let base = base.map_or(std::ptr::null(), |base| base.raw);
        // SAFETY: `run` and `base` are alive.
        let raw = unsafe { (self.tables.ir.edit())(self.run, base) };
        assert!(!raw.is_null(), "{}", self.last_error());
        // SAFETY: the host hands out a transaction whose view stays at its address.
        let view = unsafe { (self.tables.ir.transaction_body())(raw) };
        let host = self.clone();
        TransactionHandle { host, raw, view, is_borrowed: false, not_sync: PhantomData }
    }

    /// A transaction of somebody else's, for as long as a call lasts.
    ///
    /// # Safety
    /// `raw` is a transaction of this host that nobody else uses while the result lives.
    pub(in crate::abi) unsafe fn borrowed(
        &self,
        raw: *mut RawEdit,
    ) -> Result<TransactionHandle, String> {
        self.rules()?;
        // SAFETY: by this function's contract.
        let view = unsafe { (self.tables.ir.transaction_body())(raw) };
        let host = self.clone();
        Ok(TransactionHandle { host, raw, view, is_borrowed: true, not_sync: PhantomData })
    }
}

/// A counted reference to a published function.
pub(crate) struct FunctionHandle {
    host: Host,
    pub(super) raw: *const RawFunction,
}

// SAFETY: a published function is immutable and counted atomically.
unsafe impl Send for FunctionHandle {}
// SAFETY: as above.
unsafe impl Sync for FunctionHandle {}

impl Clone for FunctionHandle {
    fn clone(&self) -> Self {
        // SAFETY: `self` owns a count.
        unsafe { Self::retained(&self.host, self.raw) }
    }
}

impl Drop for FunctionHandle {
    fn drop(&mut self) {
        // SAFETY: `self` owns a count.
        unsafe { (self.host.tables.ir.function_release())(self.raw) };
    }
}

impl FunctionHandle {
    /// Adds an owner.
    ///
    /// # Safety
    /// `raw` must be a function of this host that is alive.
    pub(crate) unsafe fn retained(host: &Host, raw: *const RawFunction) -> Self {
        // SAFETY: by this function's contract.
        unsafe { (host.tables.ir.function_retain())(raw) };
        Self { host: host.clone(), raw }
    }

    /// Takes over a count that the host gave; `None` for null.
    pub(super) fn adopt(host: &Host, raw: *const RawFunction) -> Option<Self> {
        (!raw.is_null()).then(|| Self { host: host.clone(), raw })
    }

    /// Gives the count away.
    pub(crate) fn into_raw(self) -> *const RawFunction {
        // SAFETY: `self` owns a count, so the function is alive; this one outlives the drop below.
        unsafe { (self.host.tables.ir.function_retain())(self.raw) };
        self.raw
    }

    /// The host.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Reads the function.
    pub(crate) fn body(&self) -> BodyView<'_> {
        let mut body = RawBody::EMPTY;
        // SAFETY: the function is alive, and there is room for the record.
        unsafe { (self.host.tables.ir.function_body())(self.raw, &mut body, size_of::<RawBody>()) };
        // SAFETY: the arrays live as long as the function, which `self` keeps.
        BodyView::new(unsafe { BodyRecords::from_raw(body) })
    }

    /// Whether both are the very same function.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

/// A transaction, owned.
pub(crate) struct TransactionHandle {
    host: Host,
    pub(super) raw: *mut RawEdit,
    view: *const RawBody,
    /// Whether it is given up by somebody else.
    is_borrowed: bool,
    /// Edits are for one thread at a time.
    not_sync: PhantomData<*mut ()>,
}

impl Drop for TransactionHandle {
    fn drop(&mut self) {
        if !self.raw.is_null() && !self.is_borrowed {
            // SAFETY: `self` owns the transaction.
            unsafe { (self.host.tables.ir.abandon())(self.raw) };
        }
    }
}

impl TransactionHandle {
    /// The host.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// The body as it stands.
    pub(crate) fn body(&self) -> BodyView<'_> {
        // SAFETY: the record lives as long as the transaction, and starts with its size.
        let view = unsafe { read::record::<RawBody>(self.view.cast(), (*self.view).size as usize) };
        // SAFETY: it is only renewed through `&mut self`.
        unsafe { read::transaction_view(view) }
    }

    /// Adds a node.
    pub(crate) fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr {
        let node = spec.record(0, 0);
        let operands = RSlice::from_slice(read::expr_ids(operands));
        // SAFETY: `self` owns the transaction; the record is of the size that is said.
        let id = unsafe {
            (self.host.tables.ir.push())(self.raw, &node, size_of::<RawNode>(), operands)
        };
        assert!(id != NONE, "{}", self.host.last_error());
        Expr(id)
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, ty: u32, bytes: &[u8]) -> Option<Expr> {
        // SAFETY: `self` owns the transaction.
        let id =
            unsafe { (self.host.tables.ir.constant())(self.raw, ty, RSlice::from_slice(bytes)) };
        (id != NONE).then_some(Expr(id))
    }

    /// Adds a constant of a function, sharing its bytes.
    pub(crate) fn share_constant(&mut self, function: &FunctionHandle, index: u32) -> Expr {
        // SAFETY: both are alive.
        let id = unsafe { (self.host.tables.ir.share_constant())(self.raw, function.raw, index) };
        assert!(id != NONE, "{}", self.host.last_error());
        Expr(id)
    }

    /// Replaces the uses of a node.
    pub(crate) fn replace(&mut self, old: Expr, new: Expr) {
        // SAFETY: `self` owns the transaction.
        unsafe { (self.host.tables.ir.replace())(self.raw, old.0, new.0) };
    }

    /// Sets the root.
    pub(crate) fn set_root(&mut self, root: Expr) {
        // SAFETY: `self` owns the transaction.
        unsafe { (self.host.tables.ir.set_root())(self.raw, root.0) };
    }

    /// Sets the type of a node; 0 has it inferred again.
    pub(crate) fn set_type(&mut self, expr: Expr, ty: u32) {
        // SAFETY: `self` owns the transaction.
        unsafe { (self.host.tables.ir.set_type())(self.raw, expr.0, ty) };
    }

    /// What a node stands for, of a transaction that is borrowed.
    pub(crate) fn definition(&mut self, expr: Expr) -> Expr {
        // SAFETY: the transaction is alive, and `borrowed` found the table.
        let asked = self.host.tables.rules.map(|it| unsafe { (it.definition())(self.raw, expr.0) });
        asked.filter(|&id| id != NONE).map_or(expr, Expr)
    }

    /// Whether a node reads memory and is nested, of a transaction that is borrowed.
    pub(crate) fn is_nested_read(&mut self, expr: Expr) -> bool {
        // SAFETY: as for `definition`.
        let ask = |it: Table<HostRules>| unsafe { (it.is_nested_read())(self.raw, expr.0) };
        self.host.tables.rules.is_some_and(ask)
    }

    /// Evaluates a node with constant operands.
    pub(crate) fn evaluate(&mut self, expr: Expr) -> Result<Expr, String> {
        // SAFETY: `self` owns the transaction and a count of the run.
        let id = unsafe { (self.host.tables.services.evaluate())(self.host.run, self.raw, expr.0) };
        if id == NONE { Err(self.host.last_error()) } else { Ok(Expr(id)) }
    }

    /// Publishes.
    pub(crate) fn finish(mut self) -> Result<FunctionHandle, String> {
        let raw = std::mem::replace(&mut self.raw, std::ptr::null_mut());
        // SAFETY: `self` owned the transaction and gives it up.
        let function = unsafe { (self.host.tables.ir.finish())(raw) };
        FunctionHandle::adopt(&self.host, function).ok_or_else(|| self.host.last_error())
    }
}

/// A module, owned: a copy that shares its functions.
pub(crate) struct ModuleHandle {
    host: Host,
    pub(super) raw: *mut RawModule,
}

// SAFETY: reading is for any thread, and edits take `&mut`.
unsafe impl Send for ModuleHandle {}
// SAFETY: as above.
unsafe impl Sync for ModuleHandle {}

impl Drop for ModuleHandle {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: `self` owns the module.
            unsafe { (self.host.tables.ir.module_release())(self.raw) };
        }
    }
}

impl ModuleHandle {
    /// Copies a module.
    ///
    /// # Safety
    /// `raw` must be a module of this host that is alive.
    pub(crate) unsafe fn copied(host: &Host, raw: *const RawModule) -> Self {
        // SAFETY: by this function's contract.
        let raw = unsafe { (host.tables.ir.module_clone())(raw) };
        Self { host: host.clone(), raw }
    }

    /// Gives the module away.
    pub(crate) fn into_raw(mut self) -> *mut RawModule {
        std::mem::replace(&mut self.raw, std::ptr::null_mut())
    }

    /// The host.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Names of the functions, in order.
    pub(crate) fn names(&self) -> Vec<Symbol> {
        let mut names: Vec<u32> = Vec::new();
        loop {
            let room = names.len();
            // SAFETY: `self` owns the module, and there is room for so many names.
            let count =
                unsafe { (self.host.tables.ir.module_names())(self.raw, names.as_mut_ptr(), room) };
            names.resize(count, 0);
            if count <= room {
                return names.into_iter().map(Symbol).collect();
            }
        }
    }

    /// The function called `name`.
    pub(crate) fn get(&self, name: Symbol) -> Option<FunctionHandle> {
        // SAFETY: `self` owns the module.
        let function = unsafe { (self.host.tables.ir.module_get())(self.raw, name.0) };
        FunctionHandle::adopt(&self.host, function)
    }

    /// The attributes.
    pub(crate) fn attrs(&self) -> Term {
        // SAFETY: `self` owns the module.
        Term(unsafe { (self.host.tables.ir.module_attrs())(self.raw) })
    }

    /// Sets the attributes.
    pub(crate) fn set_attrs(&mut self, attrs: Term) {
        // SAFETY: `self` owns the module.
        let is_set = unsafe { (self.host.tables.ir.module_set_attrs())(self.raw, attrs.0) };
        assert!(is_set, "no term {} in this context", attrs.0);
    }

    /// Sets a function.
    pub(crate) fn insert(&mut self, name: Symbol, function: &FunctionHandle) {
        // SAFETY: `self` owns the module, and the function is alive.
        let is_set =
            unsafe { (self.host.tables.ir.module_insert())(self.raw, name.0, function.raw) };
        assert!(is_set, "{name:?} is no name, or the function belongs to another run's terms");
    }

    /// Removes a function.
    pub(crate) fn remove(&mut self, name: Symbol) {
        // SAFETY: `self` owns the module.
        unsafe { (self.host.tables.ir.module_remove())(self.raw, name.0) };
    }
}
