//! The functions behind `tenon.host.ir/1`, and what a plugin's pointers lead to.
//!
//! A pointer that is null, or not aligned as what it should lead to, is answered like something that is not
//! there.

use std::sync::Arc;

use abi_stable::std_types::{RSlice, RStr};
use tenon_plugin_api::abi::guard::guard;
use tenon_plugin_api::abi::read;
use tenon_plugin_api::abi::records::{RawBody, RawNode, RawTermTable};
use tenon_plugin_api::abi::tables::{
    CodegenTable, HostIr, HostRef, InstrumentTable, Interface, NONE, OpTable, PassTable, RECORDS,
    RawEdit, RawFunction, RawModule, RawRun, RuleTable,
};
use tenon_plugin_api::ir::{Attrs, Context, NodeSpec, Symbol, Term, TermKind};

use super::codegen::CODEGEN;
use super::edit::{Edit, has_term};
use super::imports::IMPORT;
use super::operators::OPS;
use super::rules::RULES;
use super::run::Call;
use super::services::SERVICES;
use crate::ir::{Cx, Function, Module};
use crate::services::ServiceError;

/// The host as a plugin is handed it, for one call.
pub(crate) fn host_ref(call: &Arc<Call>) -> HostRef {
    HostRef { run: Arc::as_ptr(call).cast(), query }
}

/// Borrows what a plugin's pointer leads to.
///
/// # Safety
/// See the contract in this folder's `mod.rs`.
unsafe fn borrowed<'a, T>(raw: *const T) -> Option<&'a T> {
    if !raw.is_aligned() {
        return None;
    }
    // SAFETY: by this function's contract, where it is not null.
    unsafe { raw.as_ref() }
}

/// # Safety
/// As for [`borrowed`].
unsafe fn borrowed_mut<'a, T>(raw: *mut T) -> Option<&'a mut T> {
    if !raw.is_aligned() {
        return None;
    }
    // SAFETY: by this function's contract; what is edited is used by one thread at a time.
    unsafe { raw.as_mut() }
}

/// # Safety
/// As for [`borrowed`].
pub(super) unsafe fn call_of<'a>(run: *const RawRun) -> Option<&'a Call> {
    // SAFETY: a run is a `Call` that is alive.
    unsafe { borrowed(run.cast::<Call>()) }
}

/// Another owner of what an `Arc` of the host's holds.
///
/// # Safety
/// As for [`borrowed`].
pub(super) unsafe fn owned<T>(raw: *const T) -> Option<Arc<T>> {
    // SAFETY: by this function's contract.
    unsafe { borrowed(raw) }?;
    // SAFETY: the pointer is that of an `Arc` that is alive.
    unsafe { Arc::increment_strong_count(raw) };
    // SAFETY: the count was just taken.
    Some(unsafe { Arc::from_raw(raw) })
}

/// # Safety
/// As for [`borrowed`].
pub(super) unsafe fn function_of(function: *const RawFunction) -> Option<Arc<Function>> {
    // SAFETY: a function is an `Arc<Function>` of the host's.
    unsafe { owned(function.cast::<Function>()) }
}

/// # Safety
/// As for [`borrowed`].
pub(super) unsafe fn edit_of<'a>(transaction: *mut RawEdit) -> Option<&'a mut Edit> {
    // SAFETY: a transaction is a box of an `Edit`.
    unsafe { borrowed_mut(transaction.cast::<Edit>()) }
}

/// # Safety
/// As for [`borrowed`].
pub(super) unsafe fn module_of<'a>(module: *const RawModule) -> Option<&'a Module> {
    // SAFETY: a module is a `Module` of the host's, or a box of one.
    unsafe { borrowed(module.cast::<Module>()) }
}

/// # Safety
/// As for [`borrowed`], and the caller owns the module.
unsafe fn own_module<'a>(module: *mut RawModule) -> Option<&'a mut Module> {
    // SAFETY: an owned module is a box of one.
    unsafe { borrowed_mut(module.cast::<Module>()) }
}

pub(super) fn give(function: Arc<Function>) -> *const RawFunction {
    Arc::into_raw(function).cast()
}

unsafe extern "C" fn run_retain(run: *const RawRun) {
    // SAFETY: see `mod.rs`.
    if unsafe { call_of(run) }.is_some() {
        // SAFETY: `run` came from an `Arc` that is alive.
        unsafe { Arc::increment_strong_count(run.cast::<Call>()) };
    }
}

unsafe extern "C" fn run_release(run: *const RawRun) {
    // SAFETY: see `mod.rs`.
    if unsafe { call_of(run) }.is_some() {
        // SAFETY: the caller owns a count.
        unsafe { Arc::decrement_strong_count(run.cast::<Call>()) };
    }
}

unsafe extern "C" fn terms(run: *const RawRun) -> *const RawTermTable {
    // SAFETY: see `mod.rs`.
    unsafe { call_of(run) }.map_or(std::ptr::null(), |call| call.run.cx.table())
}

unsafe extern "C" fn intern(
    run: *const RawRun,
    kind: u16,
    flags: u16,
    bits: u64,
    children: RSlice<'_, u32>,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return 0 };
    let cx = &call.run.cx;
    let count = cx.term_count();
    if kind == TermKind::STR.0 {
        return cx.symbol("").0;
    }
    let children = read::terms(read::slice(children));
    if children.iter().all(|child| child.0 < count) {
        return cx.intern(TermKind(kind), flags, bits, children).0;
    }
    // A child that does not exist reads as "none" rather than as somebody's future term.
    let known = |child: &Term| if child.0 < count { *child } else { Term(0) };
    let children: Vec<Term> = children.iter().map(known).collect();
    cx.intern(TermKind(kind), flags, bits, &children).0
}

unsafe extern "C" fn symbol(run: *const RawRun, text: RStr<'_>) -> u32 {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return 0 };
    match read::text(text) {
        Ok(text) => call.run.cx.symbol(text).0,
        Err(readable) => {
            call.run.refuse(format!("the name {readable:?} is not UTF-8"));
            0
        }
    }
}

unsafe extern "C" fn function_retain(function: *const RawFunction) {
    // SAFETY: see `mod.rs`.
    if let Some(function) = unsafe { function_of(function) } {
        std::mem::forget(function);
    }
}

unsafe extern "C" fn function_release(function: *const RawFunction) {
    // SAFETY: see `mod.rs`.
    if unsafe { borrowed(function.cast::<Function>()) }.is_some() {
        // SAFETY: the caller owns a count.
        unsafe { Arc::decrement_strong_count(function.cast::<Function>()) };
    }
}

unsafe extern "C" fn function_body(function: *const RawFunction, body: *mut RawBody, room: usize) {
    // SAFETY: see `mod.rs`; the plugin keeps an owner while it reads.
    let Some(function) = (unsafe { borrowed(function.cast::<Function>()) }) else { return };
    let known = room.min(size_of::<RawBody>());
    if body.is_null() || known < size_of::<u32>() {
        return;
    }
    let record = RawBody { size: known as u32, ..*function.view().records().raw() };
    // SAFETY: there is room for so many bytes.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const record).cast::<u8>(), body.cast::<u8>(), known);
    }
}

unsafe extern "C" fn edit(run: *const RawRun, base: *const RawFunction) -> *mut RawEdit {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { owned(run.cast::<Call>()) }) else { return std::ptr::null_mut() };
    // SAFETY: see `mod.rs`.
    let base = unsafe { function_of(base) };
    if base.as_ref().is_some_and(|base| !base.cx().is_same(&call.run.cx)) {
        call.set_error("the function belongs to another run's terms");
        return std::ptr::null_mut();
    }
    Box::into_raw(Box::new(Edit::new(call, base.as_ref()))).cast()
}

unsafe extern "C" fn abandon(transaction: *mut RawEdit) {
    // SAFETY: see `mod.rs`.
    if unsafe { edit_of(transaction) }.is_some() {
        // SAFETY: the caller owns the box that `edit` made.
        drop(unsafe { Box::from_raw(transaction.cast::<Edit>()) });
    }
}

unsafe extern "C" fn transaction_body(transaction: *mut RawEdit) -> *const RawBody {
    // SAFETY: see `mod.rs`.
    unsafe { edit_of(transaction) }.map_or(std::ptr::null(), |edit| edit.view())
}

unsafe extern "C" fn push(
    transaction: *mut RawEdit,
    node: *const RawNode,
    size: usize,
    operands: RSlice<'_, u32>,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let Some(edit) = (unsafe { edit_of(transaction) }) else { return NONE };
    if node.is_null() || !node.is_aligned() {
        return NONE;
    }
    // SAFETY: `node` is a record of `size` bytes.
    let node: RawNode = unsafe { read::record(node.cast(), size) };
    edit.push(NodeSpec::of(node), read::exprs(read::slice(operands)))
}

unsafe extern "C" fn constant(transaction: *mut RawEdit, ty: u32, bytes: RSlice<'_, u8>) -> u32 {
    // SAFETY: see `mod.rs`.
    let edit = unsafe { edit_of(transaction) };
    edit.map_or(NONE, |edit| edit.constant(ty, read::slice(bytes)))
}

unsafe extern "C" fn share_constant(
    transaction: *mut RawEdit,
    function: *const RawFunction,
    index: u32,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let (edit, function) = unsafe { (edit_of(transaction), function_of(function)) };
    let Some(edit) = edit else { return NONE };
    let is_ours = |function: &Arc<Function>| function.cx().is_same(&edit.call.run.cx);
    let function = function.filter(is_ours);
    edit.share_constant(
        function.as_ref().and_then(|function| function.constants().get(index as usize)),
    )
}

unsafe extern "C" fn replace(transaction: *mut RawEdit, old: u32, new: u32) {
    // SAFETY: see `mod.rs`.
    if let Some(edit) = unsafe { edit_of(transaction) } {
        edit.replace(old, new);
    }
}

unsafe extern "C" fn set_root(transaction: *mut RawEdit, root: u32) {
    // SAFETY: see `mod.rs`.
    if let Some(edit) = unsafe { edit_of(transaction) } {
        edit.set_root(root);
    }
}

unsafe extern "C" fn set_type(transaction: *mut RawEdit, node: u32, ty: u32) {
    // SAFETY: see `mod.rs`.
    if let Some(edit) = unsafe { edit_of(transaction) } {
        edit.set_type(node, ty);
    }
}

unsafe extern "C" fn finish(transaction: *mut RawEdit) -> *const RawFunction {
    // SAFETY: see `mod.rs`.
    if unsafe { edit_of(transaction) }.is_none() {
        return std::ptr::null();
    }
    // SAFETY: the caller gives up the box that `edit` made.
    let edit = unsafe { Box::from_raw(transaction.cast::<Edit>()) };
    let call = edit.call.clone();
    outcome(&call, || edit.finish())
}

unsafe extern "C" fn module_names(module: *const RawModule, names: *mut u32, room: usize) -> usize {
    // SAFETY: see `mod.rs`.
    let Some(module) = (unsafe { module_of(module) }) else { return 0 };
    if !names.is_null() && names.is_aligned() {
        for (place, (name, _)) in module.iter().take(room).enumerate() {
            // SAFETY: there is room for `room` names.
            unsafe { names.add(place).write(name.0) };
        }
    }
    module.len()
}

unsafe extern "C" fn module_get(module: *const RawModule, name: u32) -> *const RawFunction {
    // SAFETY: see `mod.rs`.
    unsafe { module_of(module) }
        .and_then(|module| module.get(Symbol(name)))
        .map_or(std::ptr::null(), |function| give(function.clone()))
}

unsafe extern "C" fn module_attrs(module: *const RawModule) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { module_of(module) }.map_or(0, |module| module.attrs.0)
}

unsafe extern "C" fn module_clone(module: *const RawModule) -> *mut RawModule {
    // SAFETY: see `mod.rs`.
    match unsafe { module_of(module) } {
        Some(module) => Box::into_raw(Box::new(module.clone())).cast(),
        None => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn module_release(module: *mut RawModule) {
    // SAFETY: see `mod.rs`.
    if unsafe { own_module(module) }.is_some() {
        // SAFETY: the caller owns the box that `module_clone` made.
        drop(unsafe { Box::from_raw(module.cast::<Module>()) });
    }
}

unsafe extern "C" fn module_insert(
    module: *mut RawModule,
    name: u32,
    function: *const RawFunction,
) -> bool {
    // SAFETY: see `mod.rs`; the caller owns the module.
    let (module, function) = unsafe { (own_module(module), function_of(function)) };
    let (Some(module), Some(function)) = (module, function) else { return false };
    let cx = module.cx();
    let is_name = has_term(cx, name) && cx.terms().kind(Term(name)) == TermKind::STR;
    if !is_name || !function.cx().is_same(cx) {
        return false;
    }
    module.insert(Symbol(name), function);
    true
}

unsafe extern "C" fn module_remove(module: *mut RawModule, name: u32) {
    // SAFETY: see `mod.rs`; the caller owns the module.
    if let Some(module) = unsafe { own_module(module) } {
        module.remove(Symbol(name));
    }
}

unsafe extern "C" fn module_set_attrs(module: *mut RawModule, attrs: u32) -> bool {
    // SAFETY: see `mod.rs`; the caller owns the module.
    let Some(module) = (unsafe { own_module(module) }) else { return false };
    let is_there = has_term(module.cx(), attrs);
    if is_there {
        module.attrs = Attrs(attrs);
    }
    is_there
}

/// The text of a name that a plugin gave.
pub(super) fn name_of(cx: &Cx, name: u32) -> Result<&str, ServiceError> {
    match has_term(cx, name) && cx.terms().kind(Term(name)) == TermKind::STR {
        true => Ok(cx.terms().str(Symbol(name))),
        false => Err(ServiceError::NoName(name)),
    }
}

/// What a service answers, or nothing and an error; a panic of the host's own is an error too.
pub(super) fn answered<T>(call: &Call, f: impl FnOnce() -> Result<T, ServiceError>) -> Option<T> {
    let error = match guard(f) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => panic,
    };
    call.set_error(&error);
    None
}

/// A function, or null and an error.
pub(super) fn outcome(
    call: &Call,
    f: impl FnOnce() -> Result<Arc<Function>, ServiceError>,
) -> *const RawFunction {
    answered(call, f).map_or(std::ptr::null(), give)
}

static IR: HostIr = HostIr {
    size: size_of::<HostIr>(),
    run_retain,
    run_release,
    terms,
    intern,
    symbol,
    function_retain,
    function_release,
    function_body,
    edit,
    abandon,
    transaction_body,
    push,
    constant,
    share_constant,
    replace,
    set_root,
    set_type,
    finish,
    module_names,
    module_get,
    module_attrs,
    module_clone,
    module_release,
    module_insert,
    module_remove,
    module_set_attrs,
};

/// What crosses the border, as this host knows it: what it offers, what it uses of a plugin, the records.
pub(crate) static INTERFACES: [Interface; 11 + RECORDS.len()] = {
    let [node, term, constant, body] = RECORDS;
    [
        Interface::offered(&IR),
        Interface::offered(&SERVICES),
        Interface::offered(&CODEGEN),
        Interface::offered(&OPS),
        Interface::offered(&RULES),
        Interface::offered(&IMPORT),
        Interface::used::<PassTable>(),
        Interface::used::<CodegenTable>(),
        Interface::used::<InstrumentTable>(),
        Interface::used::<OpTable>(),
        Interface::used::<RuleTable>(),
        node,
        term,
        constant,
        body,
    ]
};

unsafe extern "C" fn query(id: RStr<'_>) -> *const Interface {
    INTERFACES
        .iter()
        .filter(|interface| !interface.table.is_null())
        .find(|interface| read::text(id).is_ok_and(|id| interface.id.as_str() == id))
        .map_or(std::ptr::null(), std::ptr::from_ref)
}
