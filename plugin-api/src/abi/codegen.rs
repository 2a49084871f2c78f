//! A plugin's own side of the border, of its code generators: what `#[codegen]` expands to.

use std::sync::OnceLock;

use abi_stable::std_types::{RSlice, RStr};

use super::guard::guard;
use super::host::Host;
use super::plugin::told;
use super::read;
use super::tables::{CodegenTable, HostRef, RawFunction, RawModule};
use crate::ir::Symbol;
use crate::pass::{Function, Module, PassContext, PassError, Result};

/// Compiles functions of a module into one relocatable object.
pub type GeneratorBody = fn(&Module, &[Symbol], &PassContext) -> Result<Vec<u8>>;

/// Whether a code generator takes what one of its patterns matched.
pub type GeneratorCheck = fn(&Function, &PassContext) -> bool;

/// A code generator as `#[codegen]` registers it.
pub struct GeneratorItem {
    /// Its name.
    pub name: &'static str,
    /// Its manifest record.
    pub manifest: &'static str,
    /// Its body.
    pub body: GeneratorBody,
    /// What it takes of what its patterns match; `None` for all.
    pub accepts: Option<GeneratorCheck>,
}

/// The code generators of this library. The linker collects them; no code runs at load.
#[linkme::distributed_slice]
pub static GENERATORS: [GeneratorItem];

/// The code generators in the order of their names: the linker's order differs between builds.
pub(super) fn generators() -> &'static [&'static GeneratorItem] {
    static SORTED: OnceLock<Vec<&'static GeneratorItem>> = OnceLock::new();
    SORTED.get_or_init(|| {
        let mut items: Vec<_> = GENERATORS.iter().collect();
        items.sort_by_key(|item| item.name);
        items
    })
}

unsafe extern "C" fn count() -> u32 {
    generators().len() as u32
}

unsafe extern "C" fn name(index: u32) -> RStr<'static> {
    RStr::from_str(generators().get(index as usize).map_or("", |item| item.name))
}

unsafe extern "C" fn accepts(index: u32, host: HostRef, function: *const RawFunction) -> bool {
    // SAFETY: the caller is a host that upholds the contract of `CodegenTable::accepts`: `host` is valid
    // during the call.
    let Ok(host) = (unsafe { Host::new(host) }) else { return false };
    let ran = guard(|| {
        let Some(accepts) = generators().get(index as usize).and_then(|item| item.accepts) else {
            return Ok(true);
        };
        // SAFETY: as above: `function` is a function of this host.
        let function = unsafe { Function::retained(&host, function) };
        Ok(accepts(&function, &PassContext::new(host.clone())))
    });
    told(&host, ran).unwrap_or(false)
}

unsafe extern "C" fn generate(
    index: u32,
    host: HostRef,
    module: *const RawModule,
    names: RSlice<'_, u32>,
) -> bool {
    // SAFETY: the caller is a host that upholds the contract of `CodegenTable::generate`: `host` is valid
    // during the call.
    let Ok(host) = (unsafe { Host::new(host) }) else { return false };
    let ran = guard(|| {
        let Some(item) = generators().get(index as usize) else {
            return Err(PassError::new(format!("this library has no code generator {index}")));
        };
        // SAFETY: as above: `module` is a module of this host.
        let module = unsafe { Module::copied(&host, module) };
        let names: Vec<Symbol> = read::slice(names).iter().map(|&name| Symbol(name)).collect();
        let object = (item.body)(&module, &names, &PassContext::new(host.clone()))?;
        host.object(&object).map_err(PassError::new)
    });
    told(&host, ran).is_some()
}

pub(super) static TABLE: CodegenTable =
    CodegenTable { size: size_of::<CodegenTable>(), count, name, accepts, generate };
