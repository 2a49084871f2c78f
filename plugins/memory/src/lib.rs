//! Passes that make memory explicit and give functions their link names, in the order in which they run.

mod to_non_dataflow;

mod call_tir_rewrite;

mod static_plan_block_memory;

mod attach_global_symbol;

tenon_plugin_api::plugin! {
    id = "tenon.memory",
    summary = "Passes that make memory explicit and give functions their link names",
    license = "Apache-2.0 OR MIT"
}
