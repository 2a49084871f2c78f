//! The roots of a plugin and the interface tables.
//!
//! A plugin exports one symbol. One that is written in Rust exports an `abi_stable` header, which leads to
//! [`PluginRoot`]; one that is written in C exports [`C_ROOT_SYMBOL`], a [`CRoot`]. Both are frozen and say
//! the same: the version of the root, the manifest, and the interfaces as data: an id, a layout, a table.
//! A plugin lists what it offers, with its table, and what it uses of the host, without one. The host
//! compares each layout with its own. A table only grows, so of two versions one layout is a prefix of the
//! other, and every pair of 1.x works together.
//!
//! Every entry says who owns what and on which thread it may be called. `[any thread]`: from any thread, at
//! any time while its arguments live. `[one thread]`: from the thread that holds the transaction or the
//! changed module, one call at a time. What no entry says is borrowed for the call. Nothing unwinds.
//!
//! [`offered`] has the tables of plugins, [`host`] those of the host.

#![allow(missing_docs, reason = "abi_stable derives accessors without docs")]
#![allow(non_camel_case_types, reason = "abi_stable derives the name PluginRoot_Ref")]

mod host;
mod offered;

use std::ffi::c_void;

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::{RSlice, RStr};

use super::layout::{Description, Field, RawTable, Record, c_types, record};
use super::records::{RawAttribute, RawBody, RawConstant, RawNode, RawTensor, RawTerm};

pub use host::{HostCodegen, HostImport, HostIr, HostOps, HostRules, HostServices};
pub use offered::{CodegenTable, InstrumentTable, OpTable, PassTable, RuleTable};

/// Version of both roots. It is checked before anything else and has only ever been 1.
pub const ROOT_ABI: u32 = 1;

/// The symbol of a plugin that is written in C.
pub const C_ROOT_SYMBOL: &str = "tenon_plugin_root";

/// A number that stands for "none" where a node is returned.
pub const NONE: u32 = u32::MAX;

record! {
    /// A table or a record of one side, as data. Frozen.
    #[derive(StableAbi, Clone, Copy)]
    Interface = "tenon_interface" {
        /// Such as `tenon.pass/1`; of a record its name in C.
        id: RStr<'static>,
        /// Its layout as this side knows it.
        layout: RSlice<'static, Field>,
        /// The table, valid for ever; null of a record, and of what this side only uses.
        table: *const c_void,
    }
}

// SAFETY: an interface points to what is never written and lives for ever.
unsafe impl Send for Interface {}
// SAFETY: as above.
unsafe impl Sync for Interface {}

impl Interface {
    /// A table that this side offers.
    pub const fn offered<T: RawTable>(table: &'static T) -> Self {
        Self { table: std::ptr::from_ref(table).cast(), ..Self::used::<T>() }
    }

    /// A table of the other side.
    pub const fn used<T: RawTable>() -> Self {
        Self {
            id: RStr::from_str(T::ID),
            layout: RSlice::from_slice(T::LAYOUT),
            table: std::ptr::null(),
        }
    }

    /// A record.
    pub const fn record<T: Record>() -> Self {
        Self {
            id: RStr::from_str(T::DESCRIPTION.c_name),
            layout: RSlice::from_slice(T::LAYOUT),
            table: std::ptr::null(),
        }
    }
}

/// The records that cross, as data. Both sides list them.
pub const RECORDS: [Interface; 4] = [
    Interface::record::<RawNode>(),
    Interface::record::<RawTerm>(),
    Interface::record::<RawConstant>(),
    Interface::record::<RawBody>(),
];

/// What a plugin exports that is written in Rust.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRoot_Ref, prefix_fields = PluginRoot_Prefix)))]
pub struct PluginRoot {
    /// [`ROOT_ABI`].
    pub root_abi: u32,
    /// The manifest as it stands in the loaded library: its JSON records, one a line.
    pub manifest: extern "C" fn() -> RStr<'static>,
    /// The tables that the plugin offers, and the tables and records that it uses.
    #[sabi(last_prefix_field)]
    pub interfaces: extern "C" fn() -> RSlice<'static, Interface>,
}

impl RootModule for PluginRoot_Ref {
    abi_stable::declare_root_module_statics! {PluginRoot_Ref}
    const BASE_NAME: &'static str = "tenon_plugin";
    const NAME: &'static str = "tenon_plugin";
    const VERSION_STRINGS: VersionStrings = abi_stable::package_version_strings!();
}

record! {
    /// What a plugin exports that is written in C, as the symbol `tenon_plugin_root`. Frozen.
    #[derive(Clone, Copy)]
    CRoot = "tenon_root" {
        /// TENON_ROOT_ABI.
        root_abi: u32,
        /// Zero.
        reserved: u32,
        /// The manifest: its JSON records, one a line. The same text stands in the library's note.
        manifest: RStr<'static>,
        /// The tables that the plugin offers, and the tables and records that it uses.
        interfaces: RSlice<'static, Interface>,
    }
}

/// Names opaque types, which only pointers to are handed about.
macro_rules! opaque {
    ($($(#[doc = $doc:literal])* $name:ident = $const:literal $mut:literal,)*) => {$(
        $(#[doc = $doc])*
        #[repr(C)]
        pub struct $name {
            opaque: [u8; 0],
        }

        c_types! { *const $name => $const, *mut $name => $mut, }
    )*};
}

opaque! {
    /// The state of one run of a pass.
    RawRun = "const tenon_run *" "tenon_run *",
    /// A published function.
    RawFunction = "const tenon_function *" "tenon_function *",
    /// A module.
    RawModule = "const tenon_module *" "tenon_module *",
    /// A transaction.
    RawEdit = "const tenon_transaction *" "tenon_transaction *",
}

c_types! {
    RStr<'_> => "tenon_str",
    RSlice<'_, u8> => "tenon_bytes",
    RSlice<'_, u32> => "tenon_ids",
    RSlice<'_, RawTensor> => "tenon_tensors",
    RSlice<'_, Field> => "tenon_fields",
    RSlice<'_, Interface> => "tenon_interfaces",
    *const Interface => "const tenon_interface *",
    HostRef => "tenon_host",
    Option<Item> => "tenon_item *",
    Query => "const tenon_interface *(tenon_str)",
}

/// One part of what is shared among threads: its state, and its index.
pub type Item = unsafe extern "C" fn(state: *mut c_void, index: u64);

/// Answers with the interface of an id, or with null. What it answers with is valid for ever.
pub type Query = unsafe extern "C" fn(id: RStr<'_>) -> *const Interface;

record! {
    /// The host as a plugin is handed it, borrowed for one run of a pass. Frozen.
    #[derive(Clone, Copy)]
    HostRef = "tenon_host" {
        /// The state of this run.
        run: *const RawRun,
        /// Answers with the interface of an id, or with null. What it answers with is valid for ever.
        query: Query,
    }
}

/// How a pass failed: what [`HostServices`] is told by `fail`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure(pub u32);

impl Failure {
    /// The pass reports an error.
    pub const ERROR: Failure = Failure(1);
    /// The pass panicked; the text says where.
    pub const PANIC: Failure = Failure(2);
    /// The pass stopped because it was told to.
    pub const CANCELLED: Failure = Failure(3);
    /// A node of a model that is imported is something that the model's format does not allow.
    pub const INVALID: Failure = Failure(4);
    /// It is something that is not supported.
    pub const UNSUPPORTED: Failure = Failure(5);
    /// It reads what must be known when it is imported. The bits above the lowest eight say which input that is, from 1 on, if any.
    pub const NOT_CONSTANT: Failure = Failure(6);
    /// An operator does not take it.
    pub const OPERATOR: Failure = Failure(7);
    /// It has a tensor that cannot be read.
    pub const TENSOR: Failure = Failure(8);
    /// An input must be known when it is imported, and is made of axes or truth values. The bits above the lowest eight say which.
    pub const AXES: Failure = Failure(9);
    /// Likewise, and it is made of extents that the results have.
    pub const EXTENTS: Failure = Failure(10);

    /// The same about an input.
    pub const fn of_input(self, index: usize) -> Failure {
        Failure(self.0 | (index as u32) << 8)
    }

    /// What failed, and the input that it is about.
    pub const fn parts(self) -> (Failure, usize) {
        (Failure(self.0 & 0xff), (self.0 >> 8) as usize)
    }
}

/// What an instrument is told of: what [`InstrumentTable`] is told by `tell`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event(pub u32);

impl Event {
    /// The context is entered.
    pub const ENTER: Event = Event(1);
    /// Whether a pass may run is asked.
    pub const MAY_RUN: Event = Event(2);
    /// A pass is about to run.
    pub const BEFORE: Event = Event(3);
    /// A pass has run.
    pub const RAN: Event = Event(4);
    /// A pass was skipped.
    pub const SKIPPED: Event = Event(5);
    /// A pass has failed.
    pub const FAILED: Event = Event(6);
    /// The context is left.
    pub const EXIT: Event = Event(7);
}

c_types! {
    *mut RawAttribute => "tenon_attribute *",
    *mut RawTensor => "tenon_tensor *",
    Field => "tenon_field",
    Interface => "tenon_interface",
    *mut *const RawFunction => "const tenon_function **",
}

/// Id of [`PassTable`].
pub const PASS_INTERFACE: &str = PassTable::ID;
/// Id of [`InstrumentTable`].
pub const INSTRUMENT_INTERFACE: &str = InstrumentTable::ID;
/// Id of [`HostIr`].
pub const HOST_IR_INTERFACE: &str = HostIr::ID;
/// Id of [`HostServices`].
pub const HOST_SERVICES_INTERFACE: &str = HostServices::ID;

/// All records and tables in the order in which C must define them.
pub const DESCRIPTIONS: [Description; 21] = [
    Field::DESCRIPTION,
    Interface::DESCRIPTION,
    CRoot::DESCRIPTION,
    HostRef::DESCRIPTION,
    RawNode::DESCRIPTION,
    RawTerm::DESCRIPTION,
    RawConstant::DESCRIPTION,
    RawBody::DESCRIPTION,
    RawTensor::DESCRIPTION,
    RawAttribute::DESCRIPTION,
    PassTable::DESCRIPTION,
    InstrumentTable::DESCRIPTION,
    HostIr::DESCRIPTION,
    HostServices::DESCRIPTION,
    CodegenTable::DESCRIPTION,
    HostCodegen::DESCRIPTION,
    OpTable::DESCRIPTION,
    HostOps::DESCRIPTION,
    RuleTable::DESCRIPTION,
    HostRules::DESCRIPTION,
    HostImport::DESCRIPTION,
];
