//! The functions behind `tenon.host.ir/1` and `tenon.host.services/1`.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use abi_stable::StableAbi;
use abi_stable::prefix_type::WithMetadata;
use abi_stable::std_types::{RSlice, RStr, RString, RVec};
use tenon_plugin_api::abi::guard::guard;
use tenon_plugin_api::abi::read::{self, raw_transaction};
use tenon_plugin_api::abi::records::{RawBody, RawNode, RawTransaction};
use tenon_plugin_api::abi::tables::{
    HOST_IR_INTERFACE, HOST_SERVICES_INTERFACE, HostIr, HostIr_Ref, HostRef, HostServices,
    HostServices_Ref, InterfaceDesc,
};
use tenon_plugin_api::ir::{
    Attrs, Build, Context, Expr, Kind, NodeSpec, Symbol, Term, TermKind, Type,
};

use super::{ReportLevel, Run, text};
use crate::ir::{Function, Module, Transaction};
use crate::services;

const NONE: u32 = u32::MAX;

/// The host as a plugin is handed it, for one run.
pub fn host_ref(run: &Arc<Run>) -> HostRef {
    HostRef { run: Arc::as_ptr(run).cast(), query }
}

/// A transaction with the view of it that a plugin reads.
struct Edit {
    transaction: Transaction,
    view: RawTransaction,
}

impl Edit {
    fn renew(&mut self) {
        self.view = raw_transaction(&self.transaction.body());
    }
}

/// Borrows the run behind a pointer that came from [`host_ref`].
///
/// # Safety
/// See the contract in this folder's `mod.rs`.
unsafe fn run_of<'a>(run: *const c_void) -> &'a Run {
    // SAFETY: by this function's contract.
    unsafe { &*run.cast::<Run>() }
}

/// # Safety
/// As for [`run_of`].
unsafe fn edit_of<'a>(edit: *mut c_void) -> &'a mut Edit {
    // SAFETY: by this function's contract; a transaction is used by one thread at a time.
    unsafe { &mut *edit.cast::<Edit>() }
}

/// # Safety
/// As for [`run_of`].
unsafe fn module_of<'a>(module: *const c_void) -> &'a Module {
    // SAFETY: by this function's contract.
    unsafe { &*module.cast::<Module>() }
}

/// Another owner of the function behind a pointer.
///
/// # Safety
/// As for [`run_of`].
unsafe fn function_of(function: *const c_void) -> Arc<Function> {
    let function = function.cast::<Function>();
    // SAFETY: by this function's contract the pointer is that of an `Arc` that is alive.
    unsafe { Arc::increment_strong_count(function) };
    // SAFETY: the count was just taken.
    unsafe { Arc::from_raw(function) }
}

fn give(function: Arc<Function>) -> *const c_void {
    Arc::into_raw(function).cast()
}

unsafe extern "C" fn run_retain(run: *const c_void) {
    // SAFETY: `run` came from an `Arc` that is alive.
    unsafe { Arc::increment_strong_count(run.cast::<Run>()) };
}

unsafe extern "C" fn run_release(run: *const c_void) {
    // SAFETY: the caller owns a count.
    unsafe { Arc::decrement_strong_count(run.cast::<Run>()) };
}

unsafe extern "C" fn terms(run: *const c_void) -> *const c_void {
    // SAFETY: see `mod.rs`.
    std::ptr::from_ref(unsafe { run_of(run) }.cx.table()).cast()
}

unsafe extern "C" fn intern(
    run: *const c_void,
    kind: u16,
    flags: u16,
    bits: u64,
    children: RSlice<'_, u32>,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let cx = &unsafe { run_of(run) }.cx;
    let count = cx.term_count();
    if kind == TermKind::STR.0 {
        return cx.symbol("").0;
    }
    let children = read::terms(children.as_slice());
    if children.iter().all(|child| child.0 < count) {
        return cx.intern(TermKind(kind), flags, bits, children).0;
    }
    // A child that does not exist reads as "none" rather than as somebody's future term.
    let known = |child: &Term| if child.0 < count { *child } else { Term(0) };
    let children: Vec<Term> = children.iter().map(known).collect();
    cx.intern(TermKind(kind), flags, bits, &children).0
}

unsafe extern "C" fn symbol(run: *const c_void, text: RStr<'_>) -> u32 {
    // SAFETY: see `mod.rs`.
    let run = unsafe { run_of(run) };
    match text::checked(text) {
        Ok(text) => run.cx.symbol(text).0,
        Err(readable) => {
            run.refuse(format!("the name {readable:?} is not UTF-8"));
            0
        }
    }
}

unsafe extern "C" fn function_retain(function: *const c_void) {
    // SAFETY: the pointer is that of an `Arc` that is alive.
    unsafe { Arc::increment_strong_count(function.cast::<Function>()) };
}

unsafe extern "C" fn function_release(function: *const c_void) {
    // SAFETY: the caller owns a count.
    unsafe { Arc::decrement_strong_count(function.cast::<Function>()) };
}

unsafe extern "C" fn function_body(function: *const c_void, body: *mut c_void) {
    // SAFETY: see `mod.rs`; the plugin keeps an owner while it reads.
    let function = unsafe { &*function.cast::<Function>() };
    // SAFETY: `body` is room for a `RawBody`.
    unsafe { body.cast::<RawBody>().write(*function.view().records().raw()) };
}

unsafe extern "C" fn edit(run: *const c_void, base: *const c_void) -> *mut c_void {
    let transaction = if base.is_null() {
        // SAFETY: see `mod.rs`.
        Transaction::new(unsafe { run_of(run) }.cx.clone())
    } else {
        // SAFETY: see `mod.rs`.
        Transaction::edit(&unsafe { function_of(base) })
    };
    let view = raw_transaction(&transaction.body());
    Box::into_raw(Box::new(Edit { transaction, view })).cast()
}

unsafe extern "C" fn abandon(transaction: *mut c_void) {
    // SAFETY: the caller owns the box that `edit` made.
    drop(unsafe { Box::from_raw(transaction.cast::<Edit>()) });
}

unsafe extern "C" fn transaction_view(transaction: *mut c_void) -> *const c_void {
    // SAFETY: see `mod.rs`.
    std::ptr::from_ref(&unsafe { edit_of(transaction) }.view).cast()
}

unsafe extern "C" fn push(
    transaction: *mut c_void,
    node: *const c_void,
    size: u32,
    operands: RSlice<'_, u32>,
) -> u32 {
    let mut record = RawNode::default();
    let known = (size as usize).min(size_of::<RawNode>());
    // SAFETY: `node` is a record of `size` bytes; a shorter one leaves the tail zero.
    unsafe {
        std::ptr::copy_nonoverlapping(node.cast::<u8>(), (&raw mut record).cast::<u8>(), known);
    }
    // SAFETY: see `mod.rs`.
    let edit = unsafe { edit_of(transaction) };
    let spec = NodeSpec {
        kind: Kind(record.kind),
        flags: record.flags,
        ty: (record.ty != 0).then_some(Type(record.ty)),
        data: record.data,
        aux: record.aux,
        attrs: Attrs(record.attrs),
        span: record.span,
    };
    let id = edit.transaction.push(spec, read::exprs(operands.as_slice()));
    if spec.ty.is_none()
        && let Ok(Some(ty)) = guard(|| services::type_of(&edit.transaction, id))
    {
        edit.transaction.set_type(id, Some(ty));
    }
    edit.renew();
    id.0
}

unsafe extern "C" fn constant(transaction: *mut c_void, ty: u32, bytes: RSlice<'_, u8>) -> u32 {
    // SAFETY: see `mod.rs`.
    let edit = unsafe { edit_of(transaction) };
    if !services::fits(&edit.transaction.cx(), Type(ty), bytes.len() as u64) {
        return NONE;
    }
    let id = edit.transaction.constant(Type(ty), bytes.as_slice());
    edit.renew();
    id.0
}

unsafe extern "C" fn share_constant(
    transaction: *mut c_void,
    function: *const c_void,
    index: u32,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let edit = unsafe { edit_of(transaction) };
    // SAFETY: see `mod.rs`.
    let function = unsafe { function_of(function) };
    let Some(constant) = function.constants().get(index as usize) else { return NONE };
    let id = edit.transaction.shared_constant(constant.clone());
    edit.renew();
    id.0
}

unsafe extern "C" fn replace(transaction: *mut c_void, old: u32, new: u32) {
    // SAFETY: see `mod.rs`.
    let edit = unsafe { edit_of(transaction) };
    // A node that does not exist is refused on the plugin's side, where the author sees it.
    let count = edit.transaction.body().len() as u32;
    if old < count && new < count {
        edit.transaction.replace(Expr(old), Expr(new));
        edit.renew();
    }
}

unsafe extern "C" fn set_root(transaction: *mut c_void, root: u32) {
    // SAFETY: see `mod.rs`.
    let edit = unsafe { edit_of(transaction) };
    edit.transaction.set_root(Expr(root));
    edit.renew();
}

unsafe extern "C" fn set_type(transaction: *mut c_void, node: u32, ty: u32) {
    // SAFETY: see `mod.rs`.
    let edit = unsafe { edit_of(transaction) };
    if node < edit.transaction.body().len() as u32 {
        edit.transaction.set_type(Expr(node), (ty != 0).then_some(Type(ty)));
        edit.renew();
    }
}

unsafe extern "C" fn finish(transaction: *mut c_void, message: &mut RString) -> *const c_void {
    // SAFETY: the caller gives up the box that `edit` made.
    let edit = unsafe { Box::from_raw(transaction.cast::<Edit>()) };
    outcome(message, || services::finish(edit.transaction))
}

unsafe extern "C" fn module_names(module: *const c_void, names: &mut RVec<u32>) {
    // SAFETY: see `mod.rs`.
    names.extend(unsafe { module_of(module) }.iter().map(|(name, _)| name.0));
}

unsafe extern "C" fn module_get(module: *const c_void, name: u32) -> *const c_void {
    // SAFETY: see `mod.rs`.
    unsafe { module_of(module) }
        .get(Symbol(name))
        .map_or(std::ptr::null(), |function| give(function.clone()))
}

unsafe extern "C" fn module_attrs(module: *const c_void) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { module_of(module) }.attrs.0
}

unsafe extern "C" fn module_clone(module: *const c_void) -> *mut c_void {
    // SAFETY: see `mod.rs`.
    let copy = unsafe { module_of(module) }.clone();
    Box::into_raw(Box::new(copy)).cast()
}

unsafe extern "C" fn module_release(module: *mut c_void) {
    // SAFETY: the caller owns the box that `module_clone` made.
    drop(unsafe { Box::from_raw(module.cast::<Module>()) });
}

unsafe extern "C" fn module_insert(module: *mut c_void, name: u32, function: *const c_void) {
    // SAFETY: see `mod.rs`; the caller owns the module.
    let module = unsafe { &mut *module.cast::<Module>() };
    // SAFETY: see `mod.rs`.
    module.insert(Symbol(name), unsafe { function_of(function) });
}

unsafe extern "C" fn module_remove(module: *mut c_void, name: u32) {
    // SAFETY: see `mod.rs`; the caller owns the module.
    let module = unsafe { &mut *module.cast::<Module>() };
    module.remove(Symbol(name));
}

unsafe extern "C" fn module_set_attrs(module: *mut c_void, attrs: u32) {
    // SAFETY: see `mod.rs`; the caller owns the module.
    unsafe { &mut *module.cast::<Module>() }.attrs = Attrs(attrs);
}

unsafe extern "C" fn options(run: *const c_void) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { run_of(run) }.options.0
}

unsafe extern "C" fn target(run: *const c_void) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { run_of(run) }.target.0
}

unsafe extern "C" fn report(run: *const c_void, level: u32, text: RStr<'_>) {
    let level = match level {
        1 => ReportLevel::Error,
        2 => ReportLevel::Warning,
        3 => ReportLevel::Note,
        _ => ReportLevel::Trace,
    };
    let text = text::checked(text).map_or_else(|readable| readable, str::to_owned);
    // SAFETY: see `mod.rs`.
    unsafe { run_of(run) }.report(level, text);
}

unsafe extern "C" fn is_cancelled(run: *const c_void) -> bool {
    // SAFETY: see `mod.rs`.
    unsafe { run_of(run) }.is_cancelled()
}

unsafe extern "C" fn op_info(run: *const c_void, name: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    let run = unsafe { run_of(run) };
    match name < run.cx.term_count() {
        true => services::op_info(run.cx.terms().str(Symbol(name))),
        false => 0,
    }
}

unsafe extern "C" fn evaluate(
    _run: *const c_void,
    transaction: *mut c_void,
    node: u32,
    message: &mut RString,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let edit = unsafe { edit_of(transaction) };
    let evaluated = guard(|| services::evaluate(&mut edit.transaction, Expr(node)));
    edit.renew();
    match evaluated {
        Ok(Ok(expr)) => expr.0,
        Ok(Err(error)) | Err(error) => {
            *message = error.into();
            NONE
        }
    }
}

unsafe extern "C" fn legalize(
    run: *const c_void,
    op: u32,
    attrs: u32,
    args: RSlice<'_, u32>,
    result: u32,
    message: &mut RString,
) -> *const c_void {
    // SAFETY: see `mod.rs`.
    let run = unsafe { run_of(run) };
    let args: Vec<Type> = args.iter().map(|&ty| Type(ty)).collect();
    outcome(message, || services::legalize(run, Symbol(op), Attrs(attrs), &args, Type(result)))
}

/// A function, or null and a message; a panic of the host's own is a message too.
fn outcome(
    message: &mut RString,
    f: impl FnOnce() -> Result<Arc<Function>, String>,
) -> *const c_void {
    match guard(f) {
        Ok(Ok(function)) => give(function),
        Ok(Err(error)) | Err(error) => {
            *message = error.into();
            std::ptr::null()
        }
    }
}

static IR: &WithMetadata<HostIr> = &WithMetadata::new(HostIr {
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
    transaction_view,
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
});

static SERVICES: &WithMetadata<HostServices> = &WithMetadata::new(HostServices {
    options,
    target,
    report,
    is_cancelled,
    op_info,
    evaluate,
    legalize,
});

struct Interfaces([InterfaceDesc; 2]);
// SAFETY: the descriptors point to statics.
unsafe impl Send for Interfaces {}
// SAFETY: as above.
unsafe impl Sync for Interfaces {}

/// The tables that this host offers.
fn interfaces() -> &'static [InterfaceDesc] {
    static LIST: OnceLock<Interfaces> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let ir = HostIr_Ref(IR.static_as_prefix());
        let services = HostServices_Ref(SERVICES.static_as_prefix());
        Interfaces([
            InterfaceDesc {
                id: RStr::from_str(HOST_IR_INTERFACE),
                revision: 26,
                layout: <HostIr_Ref as StableAbi>::LAYOUT,
                table: ir.0.to_raw_ptr().cast(),
            },
            InterfaceDesc {
                id: RStr::from_str(HOST_SERVICES_INTERFACE),
                revision: 7,
                layout: <HostServices_Ref as StableAbi>::LAYOUT,
                table: services.0.to_raw_ptr().cast(),
            },
        ])
    });
    &list.0
}

unsafe extern "C" fn query(id: RStr<'_>) -> *const InterfaceDesc {
    interfaces()
        .iter()
        .find(|interface| text::checked(id).is_ok_and(|id| interface.id.as_str() == id))
        .map_or(std::ptr::null(), std::ptr::from_ref)
}
