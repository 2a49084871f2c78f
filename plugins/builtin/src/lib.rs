//! Passes that make dimensions, shapes, memory and closures what an executor does at run time, in the order in
//! which they run.

mod compute_prim_value;

mod vm_builtin_lower;

mod vm_shape_lower;

mod dims;
mod entry;

tenon_plugin_api::plugin! {
    id = "tenon.builtin",
    summary = "Passes that make shapes, memory and closures what an executor does at run time",
    license = "Apache-2.0 OR MIT"
}
