//! A plugin's own side of the border: what `#[pass]` and `plugin!` expand to.

use std::ffi::c_void;

use std::sync::OnceLock;

use abi_stable::prefix_type::PrefixTypeTrait;
use abi_stable::std_types::{RSlice, RStr};

use super::codegen;
use super::guard::guard;
use super::host::Host;
use super::instrument::{INSTRUMENT_TABLE, instruments};
use super::tables::{
    Failure, HostCodegen, HostImport, HostIr, HostOps, HostRef, HostRules, HostServices, Interface,
    PassTable, PluginRoot, PluginRoot_Ref, RECORDS, ROOT_ABI, RawModule,
};
use super::{op, rule};
use crate::pass::{Function, Module, PassContext, PassError, Result};

pub use super::codegen::{GENERATORS, GeneratorBody, GeneratorCheck, GeneratorItem};
pub use super::op::{OPERATORS, OpItem};
pub use super::rule::{RULES, RuleItem};

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
    static SORTED: OnceLock<Vec<&'static PassItem>> = OnceLock::new();
    SORTED.get_or_init(|| {
        let mut items: Vec<_> = PASSES.iter().collect();
        items.sort_by_key(|item| item.name);
        items
    })
}

extern "C" fn manifest() -> RStr<'static> {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let passes = passes().iter().map(|item| item.manifest);
        let instruments = instruments().iter().map(|item| item.manifest);
        let generators = codegen::generators().iter().map(|item| item.manifest);
        let operators = op::operators().iter().map(|item| item.manifest);
        let records = PLUGINS.iter().copied().chain(passes).chain(instruments).chain(generators);
        let rules = rule::rules().iter().map(|item| item.manifest);
        records.chain(operators).chain(rules).collect::<Vec<_>>().join("\n")
    });
    RStr::from_str(text)
}

unsafe extern "C" fn count() -> u32 {
    passes().len() as u32
}

unsafe extern "C" fn name(index: u32) -> RStr<'static> {
    RStr::from_str(passes().get(index as usize).map_or("", |item| item.name))
}

unsafe extern "C" fn run(
    index: u32,
    host: HostRef,
    unit: *const c_void,
    module: *const RawModule,
) -> *mut c_void {
    // SAFETY: the caller is a host that upholds the contract of `PassTable::run`: `host` is valid during
    // the call.
    let Ok(host) = (unsafe { Host::new(host) }) else { return std::ptr::null_mut() };
    // SAFETY: as above: the pass's kind is in the manifest, so `unit` is what it says, and `module` its
    // module.
    let ran = guard(|| unsafe { run_pass(index, &host, unit, module) });
    told(&host, ran).unwrap_or(std::ptr::null_mut())
}

/// What an author's function returned; its failure is told to the host.
pub(super) fn told<T>(host: &Host, ran: std::result::Result<Result<T>, String>) -> Option<T> {
    match ran {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => match (&error.program, error.node) {
            (Some(program), Some(node)) => {
                host.fail_in(error.failure, &error.message, (&program.0, node));
            }
            (_, node) => host.fail(error.failure, &error.message, node),
        },
        Err(panic) => host.fail(Failure::PANIC, &panic, None),
    }
    None
}

/// # Safety
/// `unit` is a module or a function of this host, as the kind of the pass says, and `module` a module.
unsafe fn run_pass(
    index: u32,
    host: &Host,
    unit: *const c_void,
    module: *const RawModule,
) -> Result<*mut c_void> {
    let Some(item) = passes().get(index as usize) else {
        return Err(PassError::new(format!("this library has no pass {index}")));
    };
    let cx = PassContext::new(host.clone());
    match item.body {
        PassBody::Module(body) => {
            // SAFETY: by this function's contract.
            let module = unsafe { Module::copied(host, unit.cast()) };
            Ok(body(module, &cx)?.into_raw().cast())
        }
        PassBody::Function(body) => {
            // SAFETY: by this function's contract.
            let module = unsafe { Module::copied(host, module) };
            // SAFETY: by this function's contract.
            let function = unsafe { Function::retained(host, unit.cast()) };
            Ok(body(function, &module, &cx)?.into_raw().cast_mut().cast())
        }
    }
}

static PASS_TABLE: PassTable = PassTable { size: size_of::<PassTable>(), count, name, run };

static INTERFACES: [Interface; 11 + RECORDS.len()] = {
    let [node, term, constant, body] = RECORDS;
    [
        Interface::offered(&PASS_TABLE),
        Interface::offered(&INSTRUMENT_TABLE),
        Interface::offered(&codegen::TABLE),
        Interface::offered(&op::TABLE),
        Interface::offered(&rule::TABLE),
        Interface::used::<HostIr>(),
        Interface::used::<HostServices>(),
        Interface::used::<HostCodegen>(),
        Interface::used::<HostOps>(),
        Interface::used::<HostRules>(),
        Interface::used::<HostImport>(),
        node,
        term,
        constant,
        body,
    ]
};

extern "C" fn interfaces() -> RSlice<'static, Interface> {
    RSlice::from_slice(&INTERFACES)
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
