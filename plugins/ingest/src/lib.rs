//! Passes that bring what was read into one form, and those over the functions of a module.

mod normalize;

mod remove_unused_functions;

tenon_plugin_api::plugin! {
    id = "tenon.ingest",
    summary = "Passes that bring what was read into one form, and those over the functions of a module",
    license = "Apache-2.0 OR MIT"
}
