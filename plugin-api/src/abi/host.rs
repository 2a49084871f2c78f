//! The host as a plugin sees it: safe calls over the host's tables.

use std::ffi::c_void;
use std::marker::PhantomData;

use abi_stable::prefix_type::PrefixRef;
use abi_stable::std_types::{RSlice, RStr, RString, RVec};

use super::read::{BodyRecords, TermTable};
use super::records::{RawBody, RawNode, RawTermTable, RawTransaction};
use super::tables::{
    HOST_IR_INTERFACE, HOST_SERVICES_INTERFACE, HostIr_Ref, HostRef, HostServices_Ref,
};
use crate::ir::{BodyView, Context, Expr, NodeSpec, Symbol, Term, TermKind, Terms};

/// Id that a call of the host returns for "none".
const NONE: u32 = u32::MAX;

/// A counted reference to the state of one run, with the host's tables. It may be sent to threads.
pub struct Host {
    run: *const c_void,
    ir: HostIr_Ref,
    services: HostServices_Ref,
}

// SAFETY: the host's tables promise that the calls made here on a shared host are for any thread, and
// the run's state is counted atomically.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Clone for Host {
    fn clone(&self) -> Self {
        // SAFETY: `run` is alive because `self` owns it.
        unsafe { (self.ir.run_retain())(self.run) };
        Self { run: self.run, ir: self.ir, services: self.services }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: `self` owns one count of `run`.
        unsafe { (self.ir.run_release())(self.run) };
    }
}

impl Host {
    /// Takes the host's tables, and a count of the run.
    ///
    /// # Safety
    /// `raw` must come from a host that upholds the contract of [`HostRef`].
    pub(super) unsafe fn new(raw: HostRef) -> Result<Self, String> {
        let table = |id: &'static str| {
            // SAFETY: by this function's contract.
            let desc = unsafe { (raw.query)(RStr::from_str(id)) };
            // SAFETY: a descriptor that is not null is valid for ever.
            unsafe { desc.as_ref() }
                .map(|desc| desc.table)
                .ok_or_else(|| format!("this host does not offer {id}"))
        };
        let ir = table(HOST_IR_INTERFACE)?;
        let services = table(HOST_SERVICES_INTERFACE)?;
        // SAFETY: the host compared this interface's layout with the one of this build before the call.
        let ir = HostIr_Ref(unsafe { PrefixRef::from_raw(ir.cast::<WithIr>()) });
        // SAFETY: as above.
        let services =
            HostServices_Ref(unsafe { PrefixRef::from_raw(services.cast::<WithServices>()) });
        // SAFETY: `run` is borrowed for the call.
        unsafe { (ir.run_retain())(raw.run) };
        Ok(Self { run: raw.run, ir, services })
    }

    /// The options of the pass, a dictionary term.
    pub(crate) fn options(&self) -> Term {
        // SAFETY: `run` is alive.
        Term(unsafe { (self.services.options())(self.run) })
    }

    /// The target, a dictionary term.
    pub(crate) fn target(&self) -> Term {
        // SAFETY: `run` is alive.
        Term(unsafe { (self.services.target())(self.run) })
    }

    /// Reports a message.
    pub(crate) fn report(&self, level: u32, text: &str) {
        // SAFETY: `run` is alive.
        unsafe { (self.services.report())(self.run, level, RStr::from_str(text)) };
    }

    /// Whether the pass should stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        // SAFETY: `run` is alive.
        unsafe { (self.services.is_cancelled())(self.run) }
    }

    /// What is known of an operator.
    pub(crate) fn op_info(&self, name: Symbol) -> u32 {
        // SAFETY: `run` is alive.
        unsafe { (self.services.op_info())(self.run, name.0) }
    }

    /// The tensor program of an operator call.
    pub(crate) fn legalize(
        &self,
        op: Symbol,
        attrs: Term,
        args: &[u32],
        result: Term,
    ) -> Result<FunctionHandle, String> {
        let mut message = RString::new();
        // SAFETY: `run` is alive.
        let function = unsafe {
            (self.services.legalize())(
                self.run,
                op.0,
                attrs.0,
                RSlice::from_slice(args),
                result.0,
                &mut message,
            )
        };
        FunctionHandle::adopt(self, function).ok_or_else(|| message.into_string())
    }

    /// Starts a transaction.
    pub(crate) fn edit(&self, base: Option<&FunctionHandle>) -> TransactionHandle {
        let base = base.map_or(std::ptr::null(), |base| base.raw);
        // SAFETY: `run` and `base` are alive.
        let raw = unsafe { (self.ir.edit())(self.run, base) };
        // SAFETY: the host hands out a transaction whose view stays at its address.
        let view = unsafe { (self.ir.transaction_view())(raw) }.cast();
        TransactionHandle { host: self.clone(), raw, view, not_sync: PhantomData }
    }
}

type WithIr = abi_stable::prefix_type::WithMetadata_<
    super::tables::HostIr_Prefix,
    super::tables::HostIr_Prefix,
>;
type WithServices = abi_stable::prefix_type::WithMetadata_<
    super::tables::HostServices_Prefix,
    super::tables::HostServices_Prefix,
>;

impl Context for Host {
    fn terms(&self) -> Terms<'_> {
        // SAFETY: the table lives as long as the run, of which `self` owns a count.
        let table = unsafe { &*(self.ir.terms())(self.run).cast::<RawTermTable>() };
        Terms::new(TermTable::new(table))
    }

    fn intern(&self, kind: TermKind, flags: u16, bits: u64, children: &[Term]) -> Term {
        let ids = RSlice::from_slice(super::read::term_ids(children));
        // SAFETY: `run` is alive.
        Term(unsafe { (self.ir.intern())(self.run, kind.0, flags, bits, ids) })
    }

    fn symbol(&self, text: &str) -> Symbol {
        // SAFETY: `run` is alive.
        Symbol(unsafe { (self.ir.symbol())(self.run, RStr::from_str(text)) })
    }
}

/// A counted reference to a published function.
pub(crate) struct FunctionHandle {
    host: Host,
    raw: *const c_void,
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
        unsafe { (self.host.ir.function_release())(self.raw) };
    }
}

impl FunctionHandle {
    /// Adds an owner.
    ///
    /// # Safety
    /// `raw` must be a function of this host that is alive.
    pub(crate) unsafe fn retained(host: &Host, raw: *const c_void) -> Self {
        // SAFETY: by this function's contract.
        unsafe { (host.ir.function_retain())(raw) };
        Self { host: host.clone(), raw }
    }

    /// Takes over a count that the host gave; `None` for null.
    fn adopt(host: &Host, raw: *const c_void) -> Option<Self> {
        (!raw.is_null()).then(|| Self { host: host.clone(), raw })
    }

    /// Gives the count away.
    pub(crate) fn into_raw(self) -> *mut c_void {
        // SAFETY: `self` owns a count, so the function is alive; this one outlives the drop below.
        unsafe { (self.host.ir.function_retain())(self.raw) };
        self.raw.cast_mut()
    }

    /// The host.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Reads the function.
    pub(crate) fn body(&self) -> BodyView<'_> {
        let mut body = std::mem::MaybeUninit::<RawBody>::uninit();
        // SAFETY: the function is alive, and the host fills in the whole record.
        let body = unsafe {
            (self.host.ir.function_body())(self.raw, body.as_mut_ptr().cast());
            body.assume_init()
        };
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
    raw: *mut c_void,
    view: *const RawTransaction,
    /// Edits are for one thread at a time.
    not_sync: PhantomData<*mut ()>,
}

impl Drop for TransactionHandle {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: `self` owns the transaction.
            unsafe { (self.host.ir.abandon())(self.raw) };
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
        // SAFETY: the view lives as long as the transaction, and is only renewed through `&mut self`.
        let view = unsafe { *self.view };
        // SAFETY: as above.
        let records = unsafe { BodyRecords::from_raw(view.body) };
        let replaced = match view.replaced_len {
            0 => &[],
            // SAFETY: the host publishes `replaced_len` entries, valid like the body.
            len => unsafe { std::slice::from_raw_parts(view.replaced, len as usize) },
        };
        BodyView::with_replacements(records, replaced, view.base_len as usize)
    }

    /// Adds a node.
    pub(crate) fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr {
        let node = RawNode {
            kind: spec.kind.0,
            flags: spec.flags,
            ty: spec.ty.map_or(0, |ty| ty.0),
            start: 0,
            len: 0,
            data: spec.data,
            aux: spec.aux,
            attrs: spec.attrs.0,
            span: spec.span,
        };
        let operands = super::read::expr_ids(operands);
        // SAFETY: `self` owns the transaction; the record is of the size that is said.
        Expr(unsafe {
            (self.host.ir.push())(
                self.raw,
                (&raw const node).cast(),
                size_of::<RawNode>() as u32,
                RSlice::from_slice(operands),
            )
        })
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, ty: u32, bytes: &[u8]) -> Option<Expr> {
        // SAFETY: `self` owns the transaction.
        let id = unsafe { (self.host.ir.constant())(self.raw, ty, RSlice::from_slice(bytes)) };
        (id != NONE).then_some(Expr(id))
    }

    /// Adds a constant of a function, sharing its bytes.
    pub(crate) fn share_constant(&mut self, function: &FunctionHandle, index: u32) -> Expr {
        // SAFETY: both are alive.
        Expr(unsafe { (self.host.ir.share_constant())(self.raw, function.raw, index) })
    }

    /// Replaces the uses of a node.
    pub(crate) fn replace(&mut self, old: Expr, new: Expr) {
        // SAFETY: `self` owns the transaction.
        unsafe { (self.host.ir.replace())(self.raw, old.0, new.0) };
    }

    /// Sets the root.
    pub(crate) fn set_root(&mut self, root: Expr) {
        // SAFETY: `self` owns the transaction.
        unsafe { (self.host.ir.set_root())(self.raw, root.0) };
    }

    /// Sets the type of a node; 0 has it inferred again.
    pub(crate) fn set_type(&mut self, expr: Expr, ty: u32) {
        // SAFETY: `self` owns the transaction.
        unsafe { (self.host.ir.set_type())(self.raw, expr.0, ty) };
    }

    /// Evaluates a node with constant operands.
    pub(crate) fn evaluate(&mut self, expr: Expr) -> Result<Expr, String> {
        let mut message = RString::new();
        // SAFETY: `self` owns the transaction and a count of the run.
        let id = unsafe {
            (self.host.services.evaluate())(self.host.run, self.raw, expr.0, &mut message)
        };
        if id == NONE { Err(message.into_string()) } else { Ok(Expr(id)) }
    }

    /// Publishes.
    pub(crate) fn finish(mut self) -> Result<FunctionHandle, String> {
        let mut message = RString::new();
        let raw = std::mem::replace(&mut self.raw, std::ptr::null_mut());
        // SAFETY: `self` owned the transaction and gives it up.
        let function = unsafe { (self.host.ir.finish())(raw, &mut message) };
        FunctionHandle::adopt(&self.host, function).ok_or_else(|| message.into_string())
    }
}

/// A module, owned: a copy that shares its functions.
pub(crate) struct ModuleHandle {
    host: Host,
    raw: *mut c_void,
}

// SAFETY: reading is for any thread, and edits take `&mut`.
unsafe impl Send for ModuleHandle {}
// SAFETY: as above.
unsafe impl Sync for ModuleHandle {}

impl Drop for ModuleHandle {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: `self` owns the module.
            unsafe { (self.host.ir.module_release())(self.raw) };
        }
    }
}

impl ModuleHandle {
    /// Copies a module.
    ///
    /// # Safety
    /// `raw` must be a module of this host that is alive.
    pub(crate) unsafe fn copied(host: &Host, raw: *const c_void) -> Self {
        // SAFETY: by this function's contract.
        let raw = unsafe { (host.ir.module_clone())(raw) };
        Self { host: host.clone(), raw }
    }

    /// Gives the module away.
    pub(crate) fn into_raw(mut self) -> *mut c_void {
        std::mem::replace(&mut self.raw, std::ptr::null_mut())
    }

    /// The host.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Names of the functions, in order.
    pub(crate) fn names(&self) -> Vec<Symbol> {
        let mut names = RVec::new();
        // SAFETY: `self` owns the module.
        unsafe { (self.host.ir.module_names())(self.raw, &mut names) };
        names.into_iter().map(Symbol).collect()
    }

    /// The function called `name`.
    pub(crate) fn get(&self, name: Symbol) -> Option<FunctionHandle> {
        // SAFETY: `self` owns the module.
        let function = unsafe { (self.host.ir.module_get())(self.raw, name.0) };
        FunctionHandle::adopt(&self.host, function)
    }

    /// The attributes.
    pub(crate) fn attrs(&self) -> Term {
        // SAFETY: `self` owns the module.
        Term(unsafe { (self.host.ir.module_attrs())(self.raw) })
    }

    /// Sets the attributes.
    pub(crate) fn set_attrs(&mut self, attrs: Term) {
        // SAFETY: `self` owns the module.
        unsafe { (self.host.ir.module_set_attrs())(self.raw, attrs.0) };
    }

    /// Sets a function.
    pub(crate) fn insert(&mut self, name: Symbol, function: &FunctionHandle) {
        // SAFETY: `self` owns the module, and the function is alive.
        unsafe { (self.host.ir.module_insert())(self.raw, name.0, function.raw) };
    }

    /// Removes a function.
    pub(crate) fn remove(&mut self, name: Symbol) {
        // SAFETY: `self` owns the module.
        unsafe { (self.host.ir.module_remove())(self.raw, name.0) };
    }
}
