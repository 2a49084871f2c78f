//! The functions behind `tenon.host.services/1`: what a pass asks of the host besides the IR.

use std::ffi::c_void;

use abi_stable::std_types::{RSlice, RStr};
use tenon_plugin_api::abi::read;
use tenon_plugin_api::abi::tables::{
    Failure, HostServices, Item, NONE, RawEdit, RawFunction, RawModule, RawRun,
};
use tenon_plugin_api::ir::{Attrs, Context, Expr, Symbol, Type};

use super::edit::has_term;
use super::run::{PassFailure, ReportLevel};
use super::tables::{answered, call_of, edit_of, function_of, module_of, outcome};
use crate::ops::program::COMPUTE;
use crate::services::ServiceError;
use crate::tune::measure_for_pass;
use crate::{parallel, services};

unsafe extern "C" fn options(run: *const RawRun) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { call_of(run) }.map_or(0, |call| call.run.options.0)
}

unsafe extern "C" fn target(run: *const RawRun) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { call_of(run) }.map_or(0, |call| call.run.target.0)
}

unsafe extern "C" fn target_of(run: *const RawRun, function: *const RawFunction) -> u32 {
    // SAFETY: see `mod.rs`.
    match unsafe { (call_of(run), function_of(function)) } {
        (Some(call), Some(function)) => call.run.target_of(&function).0,
        _ => 0,
    }
}

unsafe extern "C" fn report(run: *const RawRun, level: u32, text: RStr<'_>) {
    let level = match level {
        1 => ReportLevel::Error,
        2 => ReportLevel::Warning,
        3 => ReportLevel::Note,
        _ => ReportLevel::Trace,
    };
    // SAFETY: see `mod.rs`.
    if let Some(call) = unsafe { call_of(run) } {
        call.run.report(level, read::readable(text));
    }
}

unsafe extern "C" fn is_cancelled(run: *const RawRun) -> bool {
    // SAFETY: see `mod.rs`.
    unsafe { call_of(run) }.is_some_and(|call| call.run.is_cancelled())
}

unsafe extern "C" fn fail(run: *const RawRun, failure: u32, text: RStr<'_>, node: u32) {
    let node = (node != NONE).then_some(Expr(node));
    // SAFETY: see `mod.rs`.
    if let Some(call) = unsafe { call_of(run) } {
        let kind = Failure(failure);
        call.fail(kind, PassFailure::new(kind, read::readable(text), node));
    }
}

unsafe extern "C" fn fail_in(
    run: *const RawRun,
    failure: u32,
    text: RStr<'_>,
    function: *const RawFunction,
    node: u32,
) {
    // SAFETY: see `mod.rs`.
    if let Some(call) = unsafe { call_of(run) } {
        let kind = Failure(failure);
        let mut told = PassFailure::new(kind, read::readable(text), Some(Expr(node)));
        // SAFETY: see `mod.rs`.
        told.program = unsafe { function_of(function) };
        call.fail(kind, told);
    }
}

unsafe extern "C" fn last_error(run: *const RawRun) -> RStr<'static> {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return RStr::empty() };
    call.with_error(|text| {
        // SAFETY: the text stays where it is until this thread's next error; the lifetime is the plugin's
        // promise not to read it then.
        unsafe { RStr::from_raw_parts(text.as_ptr(), text.len()) }
    })
}

unsafe extern "C" fn op_info(run: *const RawRun, name: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    match unsafe { call_of(run) } {
        Some(call) if has_term(&call.run.cx, name) => {
            services::op_info(&call.run.cx, call.run.cx.terms().str(Symbol(name)))
        }
        _ => 0,
    }
}

unsafe extern "C" fn evaluate(run: *const RawRun, transaction: *mut RawEdit, node: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    match unsafe { (call_of(run), edit_of(transaction)) } {
        (Some(_), Some(edit)) => edit.evaluate(node),
        _ => NONE,
    }
}

unsafe extern "C" fn legalize(
    run: *const RawRun,
    op: u32,
    attrs: u32,
    args: RSlice<'_, u32>,
    result: u32,
) -> *const RawFunction {
    // SAFETY: see `mod.rs`.
    let target = unsafe { target(run) };
    // SAFETY: as above.
    unsafe { legalize_for(run, op, attrs, args, result, target) }
}

unsafe extern "C" fn legalize_for(
    run: *const RawRun,
    op: u32,
    attrs: u32,
    args: RSlice<'_, u32>,
    result: u32,
    target: u32,
) -> *const RawFunction {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return std::ptr::null() };
    let args = read::slice(args);
    outcome(call, || {
        if !call.may_ask(COMPUTE) {
            return Err(ServiceError::NotDeclared(COMPUTE.to_owned()));
        }
        let all = [op, attrs, result, target].into_iter().chain(args.iter().copied());
        if let Some(missing) = all.into_iter().find(|&term| !has_term(&call.run.cx, term)) {
            return Err(ServiceError::NoTerm(missing));
        }
        let args: Vec<Type> = args.iter().map(|&ty| Type(ty)).collect();
        let (op, attrs, target) = (Symbol(op), Attrs(attrs), Attrs(target));
        services::legalize(&call.run.cx, op, attrs, &args, Type(result), target)
    })
}

unsafe extern "C" fn measure_schedules(
    run: *const RawRun,
    module: *const RawModule,
    how: u32,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let (Some(call), Some(module)) = (unsafe { (call_of(run), module_of(module)) }) else {
        return NONE;
    };
    let cx = &call.run.cx;
    let measured = answered(call, || match has_term(cx, how) {
        _ if !module.cx().is_same(cx) => Err(ServiceError::NoModule),
        false => Err(ServiceError::NoTerm(how)),
        true => Ok(measure_for_pass(&call.run, module, Attrs(how))?),
    });
    measured.map_or(NONE, |answer| answer.map_or(0, |attrs| attrs.0))
}

unsafe extern "C" fn parallel_for(
    run: *const RawRun,
    count: u64,
    item: Option<Item>,
    state: *mut c_void,
) -> bool {
    /// What the calls share.
    struct State(*mut c_void);

    // SAFETY: what it leads to is for any thread, by the contract of the service.
    unsafe impl Sync for State {}

    impl State {
        fn get(&self) -> *mut c_void {
            self.0
        }
    }

    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return false };
    let state = State(state);
    let shared_out = answered(call, || {
        let item = item.ok_or(ServiceError::NoItem)?;
        // SAFETY: the contract of the service: `item` takes this state and any index below `count`.
        let item = |index| unsafe { item(state.get(), index) };
        parallel::for_each(count, |index| call.noted(&mut || item(index)));
        Ok(())
    });
    shared_out.is_some()
}

pub(super) static SERVICES: HostServices = HostServices {
    size: size_of::<HostServices>(),
    options,
    target,
    report,
    is_cancelled,
    fail,
    last_error,
    op_info,
    evaluate,
    legalize,
    parallel_for,
    fail_in,
    target_of,
    legalize_for,
    measure_schedules,
};
