//! Passes that merge operators into one tensor program, in the order in which they run.

mod alter_op_impl;

mod fuse_ops_by_pattern;

mod merge_composite_functions;

mod run_codegen;

mod fuse_ops;

mod fuse_tir;

mod merge_functions;

mod split_call_tir_by_pattern;

mod names;
mod partition;
mod symbols;

tenon_plugin_api::plugin! {
    id = "tenon.fusion",
    summary = "Passes that merge operators into one tensor program",
    license = "Apache-2.0 OR MIT"
}
