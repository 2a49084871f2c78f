//! Target-independent passes over graph functions.

mod dead_code_elimination;

tenon_plugin_api::plugin! {
    id = "tenon.graph",
    summary = "Target-independent passes over graph functions",
    license = "Apache-2.0 OR MIT"
}
