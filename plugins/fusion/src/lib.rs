//! Passes that merge operators into one tensor program, in the order in which they run.

mod fuse_ops;

mod fuse_tir;

mod names;

tenon_plugin_api::plugin! {
    id = "tenon.fusion",
    summary = "Passes that merge operators into one tensor program",
    license = "Apache-2.0 OR MIT"
}
