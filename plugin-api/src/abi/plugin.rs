//! A plugin's own side of the border: what `#[pass]` and `plugin!` expand to.

use std::ffi::c_void;

use abi_stable::StableAbi;
use abi_stable::prefix_type::{PrefixTypeTrait, WithMetadata};
use abi_stable::std_types::{RSlice, RStr, RString};

use super::guard::guard;
use super::host::Host;
use super::tables::{
    HostRef, InterfaceDesc, Outcome, PASS_INTERFACE, PassTable, PassTable_Ref, PluginRoot,
    PluginRoot_Ref, ROOT_ABI, Status,
};
use crate::pass::{Function, Module, PassContext, PassError, Result};

pub use abi_stable::library::LibHeader;
pub use linkme;

/// The body of a pass; its variant is the kind that its signature says.
#[derive(Clone, Copy)]
pub enum PassBody {
    /// Module in, module out.
    Module(fn(Module, &PassContext) -> Result<Module>),
    /// One graph function or tensor program in, one out.
    Function(fn(Function, &Module, &PassContext) -> Result<Function>),
}

/// A pass as `#[pass]` registers it.
pub struct PassItem {
    /// Its name.
    pub name: &'static str,
    /// Its manifest record.
    pub manifest: &'static str,
    /// Its body.
    pub body: PassBody,
}

/// The passes of this library. The linker collects them; no code runs at load.
#[linkme::distributed_slice]
pub static PASSES: [PassItem];

/// The manifest record of the plugin, one item.
#[linkme::distributed_slice]
pub static PLUGINS: [&'static str];

/// The passes in the order of their names: the linker's order differs between builds.
fn passes() -> &'static [&'static PassItem] {
    static SORTED: std::sync::OnceLock<Vec<&'static PassItem>> = std::sync::OnceLock::new();
    SORTED.get_or_init(|| {
        let mut items: Vec<_> = PASSES.iter().collect();
        items.sort_by_key(|item| item.name);
        items
    })
}

extern "C" fn manifest() -> RString {
    let records = PLUGINS.iter().copied().chain(passes().iter().map(|item| item.manifest));
    let records: Vec<&str> = records.collect();
    records.join("\n").into()
}

extern "C" fn count() -> u32 {
    passes().len() as u32
}

extern "C" fn name(index: u32) -> RStr<'static> {
    RStr::from_str(passes().get(index as usize).map_or("", |item| item.name))
}

unsafe extern "C" fn run(
    index: u32,
    host: HostRef,
    unit: *const c_void,
    module: *const c_void,
    outcome: &mut Outcome,
) -> Status {
    let ran = guard(|| {
        let Some(item) = passes().get(index as usize) else {
            return Err(PassError::new(format!("this library has no pass {index}")));
        };
        // SAFETY: the caller is a host that upholds the contract of `PassTable::run`: `host` is valid
        // during the call.
        let host = unsafe { Host::new(host) }.map_err(PassError::new)?;
        let cx = PassContext::new(host);
        match item.body {
            PassBody::Module(body) => {
                // SAFETY: the pass's kind is in the manifest, so `unit` is a module of this host.
                let module = unsafe { Module::copied(cx.host(), unit) };
                Ok(body(module, &cx)?.into_raw())
            }
            PassBody::Function(body) => {
                // SAFETY: as above: `unit` is a function and `module` its module.
                let module = unsafe { Module::copied(cx.host(), module) };
                // SAFETY: as above.
                let function = unsafe { Function::retained(cx.host(), unit) };
                Ok(body(function, &module, &cx)?.into_raw())
            }
        }
    });
    match ran {
        Ok(Ok(unit)) => {
            outcome.unit = unit;
            Status::OK
        }
        Ok(Err(error)) => {
            outcome.message = error.message.into();
            outcome.node = error.node.map_or(0, |node| node.0 + 1);
            if error.is_cancelled { Status::CANCELLED } else { Status::ERROR }
        }
        Err(panic) => {
            outcome.message = panic.into();
            Status::PANIC
        }
    }
}

const PASS_TABLE: WithMetadata<PassTable> = WithMetadata::new(PassTable { count, name, run });

/// Number of fields of [`PassTable`] in this build.
const PASS_REVISION: u32 = 3;

struct Interfaces([InterfaceDesc; 1]);
// SAFETY: the descriptors point to constants.
unsafe impl Send for Interfaces {}
// SAFETY: as above.
unsafe impl Sync for Interfaces {}

extern "C" fn interfaces() -> RSlice<'static, InterfaceDesc> {
    static LIST: std::sync::OnceLock<Interfaces> = std::sync::OnceLock::new();
    static TABLE: &WithMetadata<PassTable> = &PASS_TABLE;
    let list = LIST.get_or_init(|| {
        let table = PassTable_Ref(TABLE.static_as_prefix());
        Interfaces([InterfaceDesc {
            id: RStr::from_str(PASS_INTERFACE),
            revision: PASS_REVISION,
            layout: <PassTable_Ref as StableAbi>::LAYOUT,
            table: table.0.to_raw_ptr().cast(),
        }])
    });
    RSlice::from_slice(&list.0)
}

/// The root module of this library, for the header that `plugin!` exports.
fn root() -> PluginRoot_Ref {
    PluginRoot { root_abi: ROOT_ABI, manifest, interfaces }.leak_into_prefix()
}

extern "C" fn load_root() -> abi_stable::library::RootModuleResult {
    abi_stable::library::__call_root_module_loader(root)
}

/// The header that `plugin!` exports.
pub const fn lib_header() -> LibHeader {
    // SAFETY: `load_root` constructs the root module of the named type.
    unsafe {
        LibHeader::from_constructor::<PluginRoot_Ref>(
            load_root,
            abi_stable::library::CheckTypeLayout::Yes,
        )
    }
}
