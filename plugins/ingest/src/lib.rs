//! Passes that bring what was read into one form, and those over the functions of a module.

mod normalize;
mod to_graph_normal_form;

mod infer_type;
mod normalize_global_var;

mod bind_params;
mod bind_symbolic_vars;
mod extract_binding;
mod results;
mod return_intermediates;
mod specialize;

mod eta_expand;
mod lambda_lift;
mod realize_vdevice;
mod symbols;
mod update_vdevice;

mod call_sites;
mod inline_private_functions;
mod remove_unused_functions;
mod remove_unused_outputs;
mod remove_unused_parameters;

tenon_plugin_api::plugin! {
    id = "tenon.ingest",
    summary = "Passes that bring what was read into one form, and those over the functions of a module",
    license = "Apache-2.0 OR MIT"
}
