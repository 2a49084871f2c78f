//! The host as a plugin sees it: safe calls over the host's tables.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::OnceLock;

use abi_stable::std_types::{RSlice, RStr};

use super::layout::{RawTable, Table};
use super::read::{self, BodyRecords, TermTable};
use super::records::{RawBody, RawNode};
use super::tables::{
    Failure, HostCodegen, HostImport, HostIr, HostOps, HostRef, HostRules, HostServices, NONE,
    Query, RawEdit, RawFunction, RawModule, RawRun,
};
use crate::ir::{BodyView, Context, Expr, NodeSpec, Symbol, Term, TermKind, Terms};

/// A counted reference to the state of one run, with the host's tables. It may be sent to threads.
pub struct Host {
    run: *const RawRun,
    tables: Tables,
}

/// The host's tables.
#[derive(Clone, Copy)]
struct Tables {
    ir: Table<HostIr>,
    services: Table<HostServices>,
    /// Absent in a host that knows of no code generators.
    codegen: Option<Table<HostCodegen>>,
    /// Absent in a host that knows of no operators of plugins.
    ops: Option<Table<HostOps>>,
    /// Absent in a host that knows of no rules.
    rules: Option<Table<HostRules>>,
    /// Absent in a host whose importer names operators itself.
    import: Option<Table<HostImport>>,
}

impl Tables {
    /// The tables of a host. They are valid for ever, so those of the host that asked first are found at once: an
    /// operator is called for every node.
    ///
    /// # Safety
    /// As for [`Host::new`].
    unsafe fn of(raw: HostRef) -> Result<Self, String> {
        static FIRST: OnceLock<(Query, Tables)> = OnceLock::new();
        match FIRST.get() {
            Some((query, tables)) if std::ptr::fn_addr_eq(*query, raw.query) => Ok(*tables),
            _ => {
                // SAFETY: by this function's contract.
                let tables = unsafe { Self::asked_for(raw)? };
                let _ = FIRST.set((raw.query, tables));
                Ok(tables)
            }
        }
    }

    /// # Safety
    /// As for [`Host::new`].
    unsafe fn asked_for(raw: HostRef) -> Result<Self, String> {
        // SAFETY: by this function's contract.
        unsafe {
            Ok(Self {
                ir: table(raw)?,
                services: table(raw)?,
                codegen: table(raw).ok(),
                ops: table(raw).ok(),
                rules: table(raw).ok(),
                import: table(raw).ok(),
            })
        }
    }
}

// SAFETY: the host's tables promise that the calls made here on a shared host are for any thread, and
// the run's state is counted atomically.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Clone for Host {
    fn clone(&self) -> Self {
        // SAFETY: `run` is alive because `self` owns it.
        unsafe { (self.tables.ir.run_retain())(self.run) };
        Self { run: self.run, tables: self.tables }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: `self` owns one count of `run`.
        unsafe { (self.tables.ir.run_release())(self.run) };
    }
}

impl Host {
    /// Takes the host's tables, and a count of the run.
    ///
    /// # Safety
    /// `raw` must come from a host that upholds the contract of [`HostRef`].
    pub(super) unsafe fn new(raw: HostRef) -> Result<Self, String> {
        // SAFETY: by this function's contract.
        let tables = unsafe { Tables::of(raw)? };
        // SAFETY: `run` is borrowed for the call.
        unsafe { (tables.ir.run_retain())(raw.run) };
        Ok(Self { run: raw.run, tables })
    }

    /// The options of the pass, a dictionary term.
    pub(crate) fn options(&self) -> Term {
        // SAFETY: `run` is alive.
        Term(unsafe { (self.tables.services.options())(self.run) })
    }

    /// The target, a dictionary term.
    pub(crate) fn target(&self) -> Term {
        // SAFETY: `run` is alive.
        Term(unsafe { (self.tables.services.target())(self.run) })
    }

    /// Reports a message.
    pub(crate) fn report(&self, level: u32, text: &str) {
        // SAFETY: `run` is alive.
        unsafe { (self.tables.services.report())(self.run, level, RStr::from_str(text)) };
    }

    /// Whether the pass should stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        // SAFETY: `run` is alive.
        unsafe { (self.tables.services.is_cancelled())(self.run) }
    }

    /// What is known of an operator.
    pub(crate) fn op_info(&self, name: Symbol) -> u32 {
        // SAFETY: `run` is alive.
        unsafe { (self.tables.services.op_info())(self.run, name.0) }
    }

    /// The tensor program of an operator call.
    pub(crate) fn legalize(
        &self,
        op: Symbol,
        attrs: Term,
        args: &[u32],
        result: Term,
    ) -> Result<FunctionHandle, String> {
        let args = RSlice::from_slice(args);
        // SAFETY: `run` is alive.
        let function =
            unsafe { (self.tables.services.legalize())(self.run, op.0, attrs.0, args, result.0) };
        FunctionHandle::adopt(self, function).ok_or_else(|| self.last_error())
    }

    /// Calls `item` for every index below `count`, by the host's threads. It does not unwind.
    pub(crate) fn parallel_for(
        &self,
        count: usize,
        item: &(dyn Fn(usize) + Sync),
    ) -> Result<(), String> {
        /// # Safety
        /// `state` is what `parallel_for` hands over.
        unsafe extern "C" fn call(state: *mut c_void, index: u64) {
            // SAFETY: `state` leads to the reference that `parallel_for` holds while the host calls.
            let item = unsafe { *state.cast::<&(dyn Fn(usize) + Sync)>() };
            item(index as usize);
        }
        let id = HostServices::ID;
        let Some(service) = self.tables.services.parallel_for() else {
            return Err(format!("this host is older than 1.1: its {id} has no `parallel_for`"));
        };
        let state = (&raw const item).cast_mut().cast();
        // SAFETY: `run` is alive; `item` is for any thread, and no call is left when the service returns.
        match unsafe { service(self.run, count as u64, Some(call), state) } {
            true => Ok(()),
            false => Err(self.last_error()),
        }
    }

    /// The patterns of a code generator, a list term of strings.
    pub(crate) fn codegen_patterns(&self, generator: Symbol) -> Result<Term, String> {
        let table = self.tables.codegen.ok_or_else(no_codegen)?;
        // SAFETY: `run` is alive.
        match unsafe { (table.patterns())(self.run, generator.0) } {
            0 => Err(self.last_error()),
            list => Ok(Term(list)),
        }
    }

    /// Whether a code generator takes a function that one of its patterns matched.
    pub(crate) fn accepts(
        &self,
        generator: Symbol,
        function: &FunctionHandle,
    ) -> Result<bool, String> {
        let table = self.tables.codegen.ok_or_else(no_codegen)?;
        // SAFETY: `run` and the function are alive.
        match unsafe { (table.accepts())(self.run, generator.0, function.raw) } {
            NONE => Err(self.last_error()),
            answer => Ok(answer != 0),
        }
    }

    /// Has a code generator compile functions of a module.
    pub(crate) fn generate(
        &self,
        generator: Symbol,
        module: &ModuleHandle,
        names: &[u32],
    ) -> Result<Vec<FunctionHandle>, String> {
        let table = self.tables.codegen.ok_or_else(no_codegen)?;
        let mut programs = vec![std::ptr::null(); names.len()];
        let names = RSlice::from_slice(names);
        // SAFETY: `run` and the module are alive, and there is room for so many functions.
        let is_done = unsafe {
            (table.generate())(self.run, generator.0, module.raw, names, programs.as_mut_ptr())
        };
        if !is_done {
            return Err(self.last_error());
        }
        let adopt = |raw| FunctionHandle::adopt(self, raw).ok_or_else(|| self.last_error());
        programs.into_iter().map(adopt).collect()
    }

    /// Hands over what a code generator made.
    pub(super) fn object(&self, bytes: &[u8]) -> Result<(), String> {
        let table = self.tables.codegen.ok_or_else(no_codegen)?;
        // SAFETY: `run` is alive; the bytes are copied.
        unsafe { (table.object())(self.run, RSlice::from_slice(bytes)) };
        Ok(())
    }

    /// What the host does for operators.
    pub(super) fn ops(&self) -> Result<HostOperators<'_>, String> {
        let table =
            self.tables.ops.ok_or_else(|| format!("this host does not offer {}", HostOps::ID));
        Ok(HostOperators { host: self, table: table? })
    }

    /// The rules of a facet for a key, as a number; `None` when there are none.
    pub(crate) fn find_rules(
        &self,
        facet: Symbol,
        key: Symbol,
        version: u64,
    ) -> Result<Option<u32>, String> {
        let table = self.rules()?;
        // SAFETY: `run` is alive.
        match unsafe { (table.find())(self.run, facet.0, key.0, version) } {
            NONE => Err(self.last_error()),
            rules => Ok((rules != 0).then_some(rules)),
        }
    }

    /// Asks rules that were found; `None` when none answers.
    pub(crate) fn ask(
        &self,
        rules: u32,
        transaction: Option<&mut TransactionHandle>,
        nodes: &[Expr],
        data: Term,
    ) -> Result<Option<(Vec<Expr>, Term)>, String> {
        let table = self.rules()?;
        let edit = transaction.map_or(std::ptr::null_mut(), |transaction| transaction.raw);
        let nodes = RSlice::from_slice(read::expr_ids(nodes));
        // SAFETY: `run` and the transaction, where there is one, are alive; the answer is copied before the next question.
        unsafe {
            match (table.ask())(self.run, rules, edit, nodes, data.0) {
                NONE => Err(self.last_error()),
                0 => Ok(None),
                _ => {
                    let nodes = read::exprs(read::slice((table.answered_nodes())(self.run)));
                    Ok(Some((nodes.to_vec(), Term((table.answered_data())(self.run)))))
                }
            }
        }
    }

    /// Answers what a rule was asked.
    pub(super) fn answer(&self, nodes: &[Expr], data: Term) -> Result<(), String> {
        let table = self.rules()?;
        let nodes = RSlice::from_slice(read::expr_ids(nodes));
        // SAFETY: `run` is alive; the nodes are copied.
        match unsafe { (table.answer())(self.run, nodes, data.0) } {
            true => Ok(()),
            false => Err(self.last_error()),
        }
    }

    fn rules(&self) -> Result<Table<HostRules>, String> {
        self.tables.rules.ok_or_else(|| format!("this host does not offer {}", HostRules::ID))
    }

    /// What the host does for a rule that imports a node, and the state of this call.
    pub(super) fn import(&self) -> Result<(Table<HostImport>, *const RawRun), String> {
        let table = self.tables.import;
        let table = table.ok_or_else(|| format!("this host does not offer {}", HostImport::ID))?;
        Ok((table, self.run))
    }

    /// A transaction of somebody else's, for as long as a call lasts.
    ///
    /// # Safety
    /// `raw` is a transaction of this host that nobody else uses while the result lives.
    pub(super) unsafe fn borrowed(&self, raw: *mut RawEdit) -> Result<TransactionHandle, String> {
        self.rules()?;
        // SAFETY: by this function's contract.
        let view = unsafe { (self.tables.ir.transaction_body())(raw) };
        let host = self.clone();
        Ok(TransactionHandle { host, raw, view, is_borrowed: true, not_sync: PhantomData })
    }

    /// Says that the pass fails.
    pub(super) fn fail(&self, failure: Failure, text: &str, node: Option<Expr>) {
        let (text, node) = (RStr::from_str(text), node.map_or(NONE, |node| node.0));
        // SAFETY: `run` is alive.
        unsafe { (self.tables.services.fail())(self.run, failure.0, text, node) };
    }

    /// Says that the pass fails, about a node of a program that it made. An older host is told the message alone.
    pub(super) fn fail_in(&self, failure: Failure, text: &str, place: (&FunctionHandle, Expr)) {
        let Some(service) = self.tables.services.fail_in() else {
            return self.fail(failure, text, None);
        };
        // SAFETY: `run` and the function are alive.
        unsafe { service(self.run, failure.0, RStr::from_str(text), place.0.raw, place.1.0) };
    }

    /// Why the last call of this thread failed.
    pub(super) fn last_error(&self) -> String {
        // SAFETY: `run` is alive; the text is copied before the next call.
        read::readable(unsafe { (self.tables.services.last_error())(self.run) })
    }

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
}

/// The host's services for an operator.
#[derive(Clone, Copy)]
pub(super) struct HostOperators<'h> {
    host: &'h Host,
    table: Table<HostOps>,
}

impl HostOperators<'_> {
    /// Becomes an owner of a tensor's bytes.
    ///
    /// # Safety
    /// `owner` is that of a tensor that the host told in this call.
    pub(super) unsafe fn keep(&self, owner: *const c_void) -> Kept {
        // SAFETY: by this function's contract.
        unsafe { (self.table.retain())(owner) };
        Kept { owner, table: self.table }
    }

    /// Hands over that a tensor of the result has the bytes of an argument.
    pub(super) fn share(&self, index: u32, arg: u32) -> Result<(), String> {
        // SAFETY: `run` is alive.
        match unsafe { (self.table.share())(self.host.run, index, arg) } {
            true => Ok(()),
            false => Err(self.host.last_error()),
        }
    }

    /// Hands over the bytes of a tensor of the result.
    ///
    /// # Safety
    /// The bytes stay as they are until the host tells `release` of this plugin's operators of `owner`.
    pub(super) unsafe fn give(
        &self,
        index: u32,
        bytes: &[u8],
        owner: *mut c_void,
    ) -> Result<(), String> {
        let (data, len) = (bytes.as_ptr(), bytes.len() as u64);
        // SAFETY: `run` is alive, and by this function's contract.
        match unsafe { (self.table.give())(self.host.run, index, data, len, owner) } {
            true => Ok(()),
            false => Err(self.host.last_error()),
        }
    }
}

/// An owner of bytes of the host's.
pub(super) struct Kept {
    owner: *const c_void,
    table: Table<HostOps>,
}

// SAFETY: the bytes are never written, and owners are counted atomically.
unsafe impl Send for Kept {}
// SAFETY: as above.
unsafe impl Sync for Kept {}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: `self` owns a count.
        unsafe { (self.table.release())(self.owner) };
    }
}

fn no_codegen() -> String {
    format!("this host does not offer {}", HostCodegen::ID)
}

/// A table of the host's. The host compared its layout with that of this build before the first call.
///
/// # Safety
/// As for [`Host::new`].
unsafe fn table<T: RawTable>(raw: HostRef) -> Result<Table<T>, String> {
    // SAFETY: by this function's contract.
    let interface = unsafe { (raw.query)(RStr::from_str(T::ID)) };
    // SAFETY: an interface that is not null is valid for ever.
    let Some(interface) = (unsafe { interface.as_ref() }) else {
        return Err(format!("this host does not offer {}", T::ID));
    };
    // SAFETY: by this function's contract; it is the table of this id.
    unsafe { Table::new(interface.table.cast()) }
}

impl Context for Host {
    fn terms(&self) -> Terms<'_> {
        // SAFETY: the table lives as long as the run, of which `self` owns a count.
        let table = unsafe { &*(self.tables.ir.terms())(self.run) };
        Terms::new(TermTable::new(table))
    }

    fn intern(&self, kind: TermKind, flags: u16, bits: u64, children: &[Term]) -> Term {
        let ids = RSlice::from_slice(read::term_ids(children));
        // SAFETY: `run` is alive.
        Term(unsafe { (self.tables.ir.intern())(self.run, kind.0, flags, bits, ids) })
    }

    fn symbol(&self, text: &str) -> Symbol {
        // SAFETY: `run` is alive.
        Symbol(unsafe { (self.tables.ir.symbol())(self.run, RStr::from_str(text)) })
    }
}

/// A counted reference to a published function.
pub(crate) struct FunctionHandle {
    host: Host,
    raw: *const RawFunction,
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
    fn adopt(host: &Host, raw: *const RawFunction) -> Option<Self> {
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
    raw: *mut RawEdit,
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
    raw: *mut RawModule,
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
