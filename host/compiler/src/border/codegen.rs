//! The functions behind `tenon.host.codegen/1`: code generators, asked by passes.

use abi_stable::std_types::RSlice;
use tenon_plugin_api::abi::read;
use tenon_plugin_api::abi::tables::{HostCodegen, NONE, RawFunction, RawModule, RawRun};
use tenon_plugin_api::ir::{Context, Symbol, Term};

use super::tables::{answered, call_of, function_of, give, module_of, name_of};
use crate::external::has_known_sizes;
use crate::services::{self, ServiceError};

unsafe extern "C" fn patterns(run: *const RawRun, generator: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return 0 };
    let cx = &call.run.cx;
    let list = || {
        let patterns = call.run.generators()?.patterns(name_of(cx, generator)?)?;
        let patterns: Vec<Term> = patterns.iter().map(|text| cx.symbol(text).into()).collect();
        Ok(cx.list(&patterns).0)
    };
    answered(call, list).unwrap_or(0)
}

unsafe extern "C" fn accepts(
    run: *const RawRun,
    generator: u32,
    function: *const RawFunction,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let (Some(call), Some(function)) = (unsafe { (call_of(run), function_of(function)) }) else {
        return NONE;
    };
    let run = &call.run;
    let ask = || {
        let generator = name_of(&run.cx, generator)?;
        let generators = run.generators()?;
        Ok(has_known_sizes(&function) && generators.accepts(generator, run, &function)?)
    };
    answered(call, ask).map_or(NONE, u32::from)
}

unsafe extern "C" fn generate(
    run: *const RawRun,
    generator: u32,
    module: *const RawModule,
    names: RSlice<'_, u32>,
    programs: *mut *const RawFunction,
) -> bool {
    // SAFETY: see `mod.rs`.
    let (Some(call), Some(module)) = (unsafe { (call_of(run), module_of(module)) }) else {
        return false;
    };
    let names = read::slice(names);
    let cx = &call.run.cx;
    let made = answered(call, || {
        if programs.is_null() || !programs.is_aligned() || !module.cx().is_same(cx) {
            return Err(ServiceError::NoModule);
        }
        let names: Vec<Symbol> = names
            .iter()
            .map(|&name| name_of(cx, name).map(|_| Symbol(name)))
            .collect::<Result<_, _>>()?;
        services::generate(&call.run, name_of(cx, generator)?, module, &names)
    });
    let Some(made) = made else { return false };
    for (index, program) in made.into_iter().enumerate() {
        // SAFETY: there is room for as many programs as names.
        unsafe { programs.add(index).write(give(program)) };
    }
    true
}

unsafe extern "C" fn object(run: *const RawRun, bytes: RSlice<'_, u8>) {
    // SAFETY: see `mod.rs`.
    if let Some(call) = unsafe { call_of(run) } {
        call.set_object(read::slice(bytes).to_vec());
    }
}

pub(super) static CODEGEN: HostCodegen =
    HostCodegen { size: size_of::<HostCodegen>(), patterns, accepts, generate, object };
