//! Target-independent passes over graph functions, and the layout choice for CPUs.

mod alter_op_layout;
mod backward_fold_scale_axis;
mod canonicalize_bindings;
mod constants;
mod convert_to_dots;
mod convert_to_floats;
mod convert_to_short_dots;
mod convert_to_winograd;
mod dead_code_elimination;
mod eliminate_common_subexpr;
mod estimate_cost;
mod fold_constant;
mod fold_scale_axis;
mod forward_fold_scale_axis;
mod keep_constant_layout;
mod keep_quantized_convolutions;
mod keep_quantized_moves;
mod keep_quantized_weights;
mod legalize_ops;
mod multiply_by_reciprocal;
mod panels;
mod product;
mod quantized;
mod scaled;
mod simplify_expr;
mod simplify_inference;
mod tabulate_bytes;
mod widen_convolutions;
mod widen_data;

tenon_plugin_api::plugin! {
    id = "tenon.graph",
    summary = "Target-independent passes over graph functions, and the layout choice for CPUs",
    license = "Apache-2.0 OR MIT"
}
