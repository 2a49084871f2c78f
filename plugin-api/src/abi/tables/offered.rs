//! What a plugin offers: passes, instruments, code generators, operators, rules.

use std::ffi::c_void;

use abi_stable::std_types::{RSlice, RStr};

use super::super::layout::table;
use super::super::records::RawTensor;
use super::{HostRef, RawEdit, RawFunction, RawModule};
table! {
    /// The passes of a plugin.
    PassTable = "tenon_pass_table" "tenon.pass/1" {
        /// Number of passes. [any thread]
        fn count() -> u32;
        /// Name of a pass, as the manifest has it, borrowed for ever; empty when there is none. [any thread]
        fn name(index: u32) -> RStr<'static>;
        /// Runs a pass on `unit`: a `tenon_module` or a `tenon_function`, by the kind that the manifest says.
        /// `unit` and `module` stay the caller's. Returns the resulting function or module, which is the
        /// caller's from then on: a count of `unit` itself (`function_retain`, `module_clone`) when nothing
        /// changed. Null when the pass failed, after it has told `fail`. [any thread]
        fn run(
            index: u32,
            host: HostRef,
            unit: *const c_void,
            module: *const RawModule,
        ) -> *mut c_void;
    }
}

table! {
    /// The instruments of a plugin: what watches passes.
    InstrumentTable = "tenon_instrument_table" "tenon.instrument/1" {
        /// Number of instruments. [any thread]
        fn count() -> u32;
        /// Name of an instrument, as the manifest has it, borrowed for ever; empty when there is none.
        /// [any thread]
        fn name(index: u32) -> RStr<'static>;
        /// Makes an instrument for one context, owned by the caller; null when it cannot. [any thread]
        fn create(index: u32) -> *mut c_void;
        /// Gives an instrument up. [one thread]
        fn destroy(instrument: *mut c_void) -> ();
        /// Tells an instrument of an event: 1 the context is entered, 2 may `pass` run over `before`, 3 it is
        /// about to, 4 it made `after` of `before` in so many nanoseconds, 5 it was skipped, 6 it failed, 7 the
        /// context is left. What an event has nothing of is null, empty or 0. Answers event 2, and true to any
        /// other and to events that it does not know; what fails tells `fail`. [one thread]
        fn tell(
            instrument: *mut c_void,
            host: HostRef,
            event: u32,
            pass: RStr<'_>,
            before: *const RawModule,
            after: *const RawModule,
            nanoseconds: u64,
        ) -> bool;
    }
}

table! {
    /// The code generators of a plugin.
    CodegenTable = "tenon_codegen_table" "tenon.byoc.codegen/1" {
        /// Number of code generators. [any thread]
        fn count() -> u32;
        /// Name of a code generator, as the manifest has it, borrowed for ever; empty when there is none.
        /// [any thread]
        fn name(index: u32) -> RStr<'static>;
        /// Whether a code generator takes what one of its patterns matched, as a graph function, which stays the
        /// caller's. [any thread]
        fn accepts(index: u32, host: HostRef, function: *const RawFunction) -> bool;
        /// Compiles functions `names` of `module`, which stays the caller's, and hands the result to `object` of
        /// tenon.host.codegen/1: a relocatable object for the target that defines for each a function of its
        /// name. That takes a pointer to each tensor, dense and row-major, parameters first and then results,
        /// scratch memory of no bytes and a `tenon_parallel`, and returns 0 when it has done its work. False when
        /// that failed, after `fail` was told. [any thread]
        fn generate(
            index: u32,
            host: HostRef,
            module: *const RawModule,
            names: RSlice<'_, u32>,
        ) -> bool;
    }
}

table! {
    /// The operators of a plugin. Unstable until operators are frozen.
    OpTable = "tenon_op_table" "tenon.op/1" {
        /// Number of operators. [any thread]
        fn count() -> u32;
        /// Name of an operator, as the manifest has it, borrowed for ever; empty when there is none. [any thread]
        fn name(index: u32) -> RStr<'static>;
        /// The type of a call of an operator: of its attributes, a dictionary term, and of the types of its arguments, 0 for
        /// one without a type. The host has checked how many there are, and the attributes against the manifest. 0 when
        /// there is none, after `fail` was told. [any thread]
        fn infer(index: u32, host: HostRef, attrs: u32, args: RSlice<'_, u32>) -> u32;
        /// Computes a call of an operator, whose type was inferred: of its attributes and its arguments, tuples
        /// flattened, shapes and dimensions as tensors of i64. `results` tells element type and shape of each tensor
        /// of the result; a length of UINT64_MAX is not known before, and nor is an extent of it. Each is handed over by `result`, `share` or `give` of tenon.host.op/1. False when that failed,
        /// after `fail` was told. [any thread]
        fn evaluate(
            index: u32,
            host: HostRef,
            attrs: u32,
            args: RSlice<'_, RawTensor>,
            results: RSlice<'_, RawTensor>,
        ) -> bool;
        /// Gives up what was handed over by `give`. [any thread]
        fn release(owner: *mut c_void) -> ();
    }
}

table! {
    /// The rules of a plugin: what it knows of operators, by facet and key. Unstable until operators are frozen.
    RuleTable = "tenon_rule_table" "tenon.rule/1" {
        /// Number of rules. [any thread]
        fn count() -> u32;
        /// The facet of a rule, as the manifest has it, borrowed for ever; empty when there is none. [any thread]
        fn facet(index: u32) -> RStr<'static>;
        /// The key of a rule, as the manifest has it, borrowed for ever; empty when there is none. [any thread]
        fn key(index: u32) -> RStr<'static>;
        /// Asks a rule: about nodes of a transaction, which stays the caller's and may be null, and data, a term. What these
        /// are says the facet. A rule adds nodes and replaces none. It hands its answer to `answer` of tenon.host.rule/1,
        /// and declines when it returns without. False when it failed, after `fail` was told. [one thread]
        fn apply(
            index: u32,
            host: HostRef,
            transaction: *mut RawEdit,
            nodes: RSlice<'_, u32>,
            data: u32,
        ) -> bool;
    }
}
