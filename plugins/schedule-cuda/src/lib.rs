//! Rules that schedule tensor programs for CUDA: element-wise ones, and products of matrices. What no rule knows has no threads, and
//! the code generator says so.

mod elementwise;
mod product;
mod programs;

tenon_plugin_api::plugin! {
    id = "tenon.schedule_cuda",
    summary = "Rules that schedule tensor programs for CUDA",
    license = "Apache-2.0 OR MIT"
}
