//! Passes that plan memory and give functions their link names, in the order in which they run.

mod liveness_analysis;

mod memory_schedule;

mod rematerialization;

mod rewrite_dataflow_reshape;

mod to_non_dataflow;

mod remove_purity_checking;

mod lower_external_calls;

mod call_tir_rewrite;

mod place_parts;

mod inplace_update;

mod static_plan_block_memory;

mod append_in_place;

mod lower_alloc_tensor;

mod kill_after_last_use;

mod attach_global_symbol;

mod found_symbols;
mod graph_memory;
mod index;
mod lifetimes;
mod roles;
mod unused;

tenon_plugin_api::plugin! {
    id = "tenon.memory",
    summary = "Passes that plan memory and give functions their link names",
    license = "Apache-2.0 OR MIT"
}
