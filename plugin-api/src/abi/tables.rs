//! The frozen root and the interface tables.
//!
//! A plugin exports one symbol, an `abi_stable` header that leads to [`PluginRoot`]. The root never gains
//! a field. It lists interface tables as data: an id, a revision, the layout of the table, the table. The
//! host queries it for what it knows, and hands its own tables over the same way. A table is only ever
//! appended to, so of two builds one layout is always a prefix of the other; the check runs in both
//! directions and accepts when either holds.
//!
//! Every function says who owns what. Unless a line says otherwise: pointers are borrowed for the call,
//! a function may be called from the thread that the pass runs on, and nothing unwinds.

#![allow(non_camel_case_types, reason = "abi_stable derives names such as PluginRoot_Ref")]
#![allow(missing_docs, reason = "abi_stable derives accessors without docs")]

use std::ffi::c_void;

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::{RSlice, RStr, RString, RVec};
use abi_stable::type_layout::TypeLayout;

/// Version of the root. It is checked before anything else and has only ever been 1.
pub const ROOT_ABI: u32 = 1;

/// An interface table as data.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct InterfaceDesc {
    /// Such as `tenon.pass/1`.
    pub id: RStr<'static>,
    /// Number of fields that the table's maker knows.
    pub revision: u32,
    /// Layout of the table's type.
    pub layout: &'static TypeLayout,
    /// The table; valid for ever, since no library is unloaded.
    pub table: *const c_void,
}

/// What a plugin exports.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRoot_Ref, prefix_fields = PluginRoot_Prefix)))]
pub struct PluginRoot {
    /// [`ROOT_ABI`].
    pub root_abi: u32,
    /// The manifest as it stands in the loaded library: the concatenated notes' JSON records, one a line.
    pub manifest: extern "C" fn() -> RString,
    /// The tables that the plugin offers.
    #[sabi(last_prefix_field)]
    pub interfaces: extern "C" fn() -> RSlice<'static, InterfaceDesc>,
}

impl RootModule for PluginRoot_Ref {
    abi_stable::declare_root_module_statics! {PluginRoot_Ref}
    const BASE_NAME: &'static str = "tenon_plugin";
    const NAME: &'static str = "tenon_plugin";
    const VERSION_STRINGS: VersionStrings = abi_stable::package_version_strings!();
}

/// Outcome of a call across the border.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(pub u32);

impl Status {
    /// Done.
    pub const OK: Status = Status(0);
    /// The callee reports an error; its text stands in the out-parameter.
    pub const ERROR: Status = Status(1);
    /// The callee panicked; the text says where.
    pub const PANIC: Status = Status(2);
    /// The callee was cancelled.
    pub const CANCELLED: Status = Status(3);
}

/// What a pass returns through.
#[repr(C)]
#[derive(StableAbi)]
pub struct Outcome {
    /// The resulting function or module, owned by the caller; null on an error.
    pub unit: *mut c_void,
    /// The text of an error.
    pub message: RString,
    /// The node the error is about plus one; 0 when it is about none.
    pub node: u32,
}

/// Id of [`PassTable`].
pub const PASS_INTERFACE: &str = "tenon.pass/1";
/// Id of [`HostIr`].
pub const HOST_IR_INTERFACE: &str = "tenon.host.ir/1";
/// Id of [`HostServices`].
pub const HOST_SERVICES_INTERFACE: &str = "tenon.host.services/1";

/// `tenon.pass/1`: the passes of a plugin. May be called from several threads at once.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PassTable_Ref, prefix_fields = PassTable_Prefix)))]
pub struct PassTable {
    /// Number of passes.
    pub count: extern "C" fn() -> u32,
    /// Name of pass `index`; empty when there is none.
    pub name: extern "C" fn(index: u32) -> RStr<'static>,
    /// Runs pass `index` on `unit`, a module or a function by the pass's kind, which stays the caller's.
    #[sabi(last_prefix_field)]
    pub run: unsafe extern "C" fn(
        index: u32,
        host: HostRef,
        unit: *const c_void,
        module: *const c_void,
        outcome: &mut Outcome,
    ) -> Status,
}

/// The host as a plugin is handed it, borrowed for one run of a pass.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct HostRef {
    /// The state of this run, opaque to the plugin.
    pub run: *const c_void,
    /// Answers with the table of an id, or with null. The table is valid for ever.
    pub query: unsafe extern "C" fn(id: RStr<'_>) -> *const InterfaceDesc,
}

/// `tenon.host.ir/1`: reads and edits the IR. `run` is [`HostRef::run`].
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = HostIr_Ref, prefix_fields = HostIr_Prefix)))]
pub struct HostIr {
    /// Another owner of the run's state: it outlives the run for as long as it has one. Any thread.
    pub run_retain: unsafe extern "C" fn(run: *const c_void),
    /// One owner less. Any thread.
    pub run_release: unsafe extern "C" fn(run: *const c_void),
    /// The term table (`RawTermTable`), valid during the run.
    pub terms: unsafe extern "C" fn(run: *const c_void) -> *const c_void,
    /// Makes a term. Any thread.
    pub intern: unsafe extern "C" fn(
        run: *const c_void,
        kind: u16,
        flags: u16,
        bits: u64,
        children: RSlice<'_, u32>,
    ) -> u32,
    /// Makes a name; 0 for bytes that are not UTF-8, and the pass fails when it has ended. Any thread.
    pub symbol: unsafe extern "C" fn(run: *const c_void, text: RStr<'_>) -> u32,

    /// Another owner of a function. Any thread.
    pub function_retain: unsafe extern "C" fn(function: *const c_void),
    /// One owner less. Any thread.
    pub function_release: unsafe extern "C" fn(function: *const c_void),
    /// Writes the function's `RawBody`, valid as long as it has an owner. Any thread.
    pub function_body: unsafe extern "C" fn(function: *const c_void, body: *mut c_void),

    /// Starts a transaction, owned by the caller: of `base`, or from nothing when it is null.
    pub edit: unsafe extern "C" fn(run: *const c_void, base: *const c_void) -> *mut c_void,
    /// Gives a transaction up.
    pub abandon: unsafe extern "C" fn(transaction: *mut c_void),
    /// The transaction's `RawTransaction`: its address stays, its content is renewed by every edit.
    pub transaction_view: unsafe extern "C" fn(transaction: *mut c_void) -> *const c_void,
    /// Adds a node (`RawNode` of `size` bytes; `start` and `len` are not read).
    pub push: unsafe extern "C" fn(
        transaction: *mut c_void,
        node: *const c_void,
        size: u32,
        operands: RSlice<'_, u32>,
    ) -> u32,
    /// Adds a constant of a static tensor type, copying its bytes; 0xffff_ffff when they do not fit it.
    pub constant:
        unsafe extern "C" fn(transaction: *mut c_void, ty: u32, bytes: RSlice<'_, u8>) -> u32,
    /// Adds constant `index` of `function`, sharing its bytes.
    pub share_constant:
        unsafe extern "C" fn(transaction: *mut c_void, function: *const c_void, index: u32) -> u32,
    /// Replaces the uses of `old` by `new`.
    pub replace: unsafe extern "C" fn(transaction: *mut c_void, old: u32, new: u32),
    /// Sets the root.
    pub set_root: unsafe extern "C" fn(transaction: *mut c_void, root: u32),
    /// Sets the type of a node; 0 has it inferred again.
    pub set_type: unsafe extern "C" fn(transaction: *mut c_void, node: u32, ty: u32),
    /// Publishes and ends the transaction: a function that the caller owns, or null and a message.
    pub finish:
        unsafe extern "C" fn(transaction: *mut c_void, message: &mut RString) -> *const c_void,

    /// Writes the names of a module's functions, in order.
    pub module_names: unsafe extern "C" fn(module: *const c_void, names: &mut RVec<u32>),
    /// The function called `name`, owned by the caller; null when there is none.
    pub module_get: unsafe extern "C" fn(module: *const c_void, name: u32) -> *const c_void,
    /// The module's attributes.
    pub module_attrs: unsafe extern "C" fn(module: *const c_void) -> u32,
    /// A copy of the module that shares its functions, owned by the caller.
    pub module_clone: unsafe extern "C" fn(module: *const c_void) -> *mut c_void,
    /// Gives a module up.
    pub module_release: unsafe extern "C" fn(module: *mut c_void),
    /// Sets a function; the module becomes another owner.
    pub module_insert:
        unsafe extern "C" fn(module: *mut c_void, name: u32, function: *const c_void),
    /// Removes a function.
    pub module_remove: unsafe extern "C" fn(module: *mut c_void, name: u32),
    /// Sets the module's attributes.
    #[sabi(last_prefix_field)]
    pub module_set_attrs: unsafe extern "C" fn(module: *mut c_void, attrs: u32),
}

/// `tenon.host.services/1`: what the host does for a pass. `run` is [`HostRef::run`].
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = HostServices_Ref, prefix_fields = HostServices_Prefix)))]
pub struct HostServices {
    /// The pass's options, a dictionary term with defaults filled in. Any thread.
    pub options: unsafe extern "C" fn(run: *const c_void) -> u32,
    /// The target, a dictionary term: `kind`, `vector_bits`, `vector_registers`, `threads`. Any thread.
    pub target: unsafe extern "C" fn(run: *const c_void) -> u32,
    /// Reports a message: 1 error, 2 warning, 3 note, 4 trace. Any thread.
    pub report: unsafe extern "C" fn(run: *const c_void, level: u32, text: RStr<'_>),
    /// Whether the pass should stop. Any thread.
    pub is_cancelled: unsafe extern "C" fn(run: *const c_void) -> bool,
    /// What is known of an operator: bit 0 known, bit 1 pure, bits 8.. the fusion pattern. Any thread.
    pub op_info: unsafe extern "C" fn(run: *const c_void, name: u32) -> u32,
    /// Evaluates a node whose operands are constants, by the reference evaluator, and adds the result
    /// to the transaction; 0xffff_ffff and a message when it cannot.
    pub evaluate: unsafe extern "C" fn(
        run: *const c_void,
        transaction: *mut c_void,
        node: u32,
        message: &mut RString,
    ) -> u32,
    /// The tensor program of an operator call: of an operator, attributes, argument types and a result
    /// type. It is private. Owned by the caller; null and a message when the operator has none.
    #[sabi(last_prefix_field)]
    pub legalize: unsafe extern "C" fn(
        run: *const c_void,
        op: u32,
        attrs: u32,
        args: RSlice<'_, u32>,
        result: u32,
        message: &mut RString,
    ) -> *const c_void,
}
