//! Passes that turn models into what training them computes.

mod decompose_ops_for_training;
mod gradient;

tenon_plugin_api::plugin! {
    id = "tenon.training",
    summary = "Passes that turn models into what training them computes",
    license = "Apache-2.0 OR MIT"
}
