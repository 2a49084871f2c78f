//! Passes that write calls of graph functions in another, cheaper form.

mod adjust_matmul_order;
mod canonicalize_cast;
mod canonicalize_ops;
mod combine_parallel_conv2d;
mod combine_parallel_dense;
mod combine_parallel_matmul;
mod convert_layout;
mod expand_matmul_of_sum;
mod fast_math;
mod lift_transform_params;
mod parallel;
mod reorder_permute_dims_after_concat;
mod reorder_take_after_matmul;
mod to_mixed_precision;

tenon_plugin_api::plugin! {
    id = "tenon.rewrite",
    summary = "Passes that write calls of graph functions in another, cheaper form",
    license = "Apache-2.0 OR MIT"
}
