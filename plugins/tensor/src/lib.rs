//! Passes over tensor programs, in the order in which they usually run.

mod flatten_buffer;
mod lower_blocks;

tenon_plugin_api::plugin! {
    id = "tenon.tensor",
    summary = "Passes over tensor programs",
    license = "Apache-2.0 OR MIT"
}
